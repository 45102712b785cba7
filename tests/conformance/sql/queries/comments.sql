-- Comments anywhere, and a semicolon at the end
-- given: M

/* every packet */ SELECT srcIP, -- who
       len /* how long */ FROM M -- from there
WHERE len > 1000 -- only these
;
-- the end

--- oracle
SELECT srcIP AS srcIP, len AS len FROM M WHERE len > 1000
