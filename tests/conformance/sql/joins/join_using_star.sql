-- SELECT * after USING has the column once

SELECT * FROM First a JOIN Second b USING (ItemType, ts)

--- stream First
ts | ItemType | price
1 | tea | 5
2 | tea | 6
3 | soap | 7

--- stream Second
ts | ItemType | shop
2 | tea | x
2 | soap | y
3 | soap | z

--- rows
ts | ItemType | price | shop
2 | tea | 6 | x
3 | soap | 7 | z
