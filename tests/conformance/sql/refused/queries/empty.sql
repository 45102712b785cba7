-- No text
-- given: M

   
 

--- error at 1:1
there is no query in this text
