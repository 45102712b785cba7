-- Keywords and names in any letters
-- given: Main1

select MAIN1.SRCIP, CoUnT(*) as N from main1 [Range 1 MINUTE, slide 1 Min, wa TS] group by srcip having n > 2

--- oracle
SELECT date_trunc('minute', ts) AS window_start,
       date_trunc('minute', ts) + INTERVAL 1 MINUTE AS window_end, srcIP AS SRCIP, count(*) AS N
FROM Main1 GROUP BY ALL HAVING count(*) > 2
