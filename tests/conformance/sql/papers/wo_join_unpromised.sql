-- Query 1 of WO-Join over streams that promise nothing: one join of all, as many places as need be
-- given: Wild1, Wild2, Wild3

SELECT * FROM Wild1 S1, Wild2 S2, Wild3 S3
WHERE S1.epoch = S2.epoch AND S2.epoch = S3.epoch

--- oracle
SELECT S1.epoch AS S1_epoch, S1.x AS S1_x, S1.y AS S1_y, S1.z AS S1_z, S1.val AS S1_val,
       S2.epoch AS S2_epoch, S2.x AS S2_x, S2.y AS S2_y, S2.z AS S2_z, S2.val AS S2_val,
       S3.epoch AS S3_epoch, S3.x AS S3_x, S3.y AS S3_y, S3.z AS S3_z, S3.val AS S3_val
FROM Wild1 S1, Wild2 S2, Wild3 S3
WHERE S1.epoch = S2.epoch AND S2.epoch = S3.epoch
