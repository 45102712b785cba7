-- Joined on a time that an outer join may leave empty
-- given: A, B, C

SELECT a.ts FROM A a LEFT JOIN B b ON a.ts = b.ts JOIN C c ON c.ts = b.ts

--- error at 1:56
a join cannot go by 'b.ts': an outer join can leave it null; use coalesce(...) of both times
