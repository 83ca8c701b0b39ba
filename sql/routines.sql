-- bizlock: the same locks from any language, by CALL. Optional. MySQL 8.0.17 and later, MariaDB 10.6
-- and later. Apply it to the database that has bizlock's tables, as often as you like:
--     mysql shop < sql/routines.sql
-- or by `bizlock migrate --routines`. docs/languages.md says how to use the routines.
--
--     CALL biz_lock_wait('order', '4711', 5000);
--     CALL biz_lock_try('order', '4711', 'web-17', 30000, @fence, @holder, @left_ms);
--     CALL biz_lock_renew('order', '4711', 'web-17', @fence, 30000, @ok);
--     CALL biz_lock_release('order', '4711', 'web-17', @fence, @ok);
--     SELECT * FROM biz_locks;
--
-- Whoever applies this file is the definer: the routines and the view run with the privileges of
-- that account, and their users need no privilege on any table. docs/internals.md says why the
-- statements are what they are; `bizlock migrate` sets another prefix in the names that stand in
-- back quotes.
--
-- MySQL cannot replace a procedure: it forgets who may execute it, so the GRANTs have to be repeated.
-- A change to a routine raises the number in all comments: by that the doctor knows older ones.

DELIMITER //

-- A routine keeps the sql_mode that it was made with. Other modes change a value that does not fit,
-- in place of an error.
SET @bizlock_sql_mode = @@SESSION.sql_mode,
    SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO'
//

-- ---- what the routines share; not for users ---------------------------------------------------

/*!80017 DROP PROCEDURE IF EXISTS `biz_lock_args` */ /*M!100202 DO 0 */
//

-- Refuses bad arguments, and makes the names. No name of a client's owner is without a second '@',
-- so an owner of a routine cannot pass for one.
/*!80017 CREATE */ /*M!100202 CREATE OR REPLACE */ PROCEDURE `biz_lock_args` (
  IN in_type TEXT CHARACTER SET utf8mb4, IN in_id TEXT CHARACTER SET utf8mb4,
  IN in_owner TEXT CHARACTER SET utf8mb4, IN in_fence BIGINT, IN in_lease_ms BIGINT,
  OUT out_owner VARCHAR(191) CHARACTER SET ascii, OUT out_bell VARCHAR(64) CHARACTER SET ascii)
  SQL SECURITY DEFINER
  COMMENT 'bizlock routines 1'
BEGIN
  DECLARE v_flaw VARCHAR(128) DEFAULT NULL;

  IF in_type IS NULL OR LENGTH(in_type) NOT BETWEEN 1 AND 64 THEN
    SET v_flaw = 'bizlock: the type has to have 1 to 64 bytes';
  ELSEIF in_id IS NULL OR LENGTH(in_id) NOT BETWEEN 1 AND 128 THEN
    SET v_flaw = 'bizlock: the id has to have 1 to 128 bytes';
  ELSEIF LOCATE(x'00', CAST(in_type AS BINARY)) > 0 OR LOCATE(x'00', CAST(in_id AS BINARY)) > 0 THEN
    SET v_flaw = 'bizlock: type and id cannot have a byte that is zero';
  ELSEIF LEFT(CAST(in_type AS BINARY), 7) = CAST('bizlock' AS BINARY) THEN
    SET v_flaw = 'bizlock: types that begin with bizlock are reserved';
  ELSEIF in_owner IS NULL OR LENGTH(in_owner) NOT BETWEEN 1 AND 64 THEN
    SET v_flaw = 'bizlock: the owner has to have 1 to 64 bytes';
  ELSEIF in_owner COLLATE utf8mb4_bin REGEXP '[^!-?A-~]' THEN
    SET v_flaw = 'bizlock: the owner has to be of printable ASCII, without space and @';
  ELSEIF in_fence IS NULL THEN
    SET v_flaw = 'bizlock: the fence is NULL: the lock was not granted';
  ELSEIF in_fence <= 0 THEN
    SET v_flaw = 'bizlock: a fence is larger than 0';
  ELSEIF in_lease_ms IS NULL OR in_lease_ms NOT BETWEEN 100 AND 86400000 THEN
    SET v_flaw = 'bizlock: the lease has to be 100 to 86400000 milliseconds';
  ELSEIF @@SESSION.insert_id <> 0 THEN
    SET v_flaw = 'bizlock: this session has set insert_id, which would become a fence';
  END IF;
  IF v_flaw IS NOT NULL THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = v_flaw;
  END IF;
  SET out_owner = CONCAT(in_owner, '@sql');
  SET out_bell = CONCAT('bizlock:', LEFT(SHA2(CONCAT_WS(CHAR(0 USING utf8mb4),
      CONVERT(DATABASE() USING utf8mb4), TRIM(BOTH '`' FROM '`biz_lock`'), in_type, in_id, ''),
      256), 32));
END
//

/*!80017 DROP PROCEDURE IF EXISTS `biz_lock_wake` */ /*M!100202 DO 0 */
//

-- Wakes the C clients that sleep for this key: watchers, and the first in line. Without the
-- privilege to end statements of their user this does nothing, and they look for themselves.
/*!80017 CREATE */ /*M!100202 CREATE OR REPLACE */ PROCEDURE `biz_lock_wake` (
  IN in_bell VARCHAR(64) CHARACTER SET ascii)
  SQL SECURITY DEFINER
  COMMENT 'bizlock routines 1'
BEGIN
  DECLARE v_slot INT DEFAULT 0;
  DECLARE v_name VARCHAR(64) CHARACTER SET ascii;
  DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;

  WHILE v_slot < 3 DO
    SET v_name = INSERT(in_bell, 1, 7, CONCAT('bizwat', v_slot));
    IF IS_USED_LOCK(v_name) <> CONNECTION_ID() THEN
      KILL QUERY IFNULL(IS_USED_LOCK(v_name), 0);
    END IF;
    SET v_slot = v_slot + 1;
  END WHILE;
END
//

/*!80017 DROP PROCEDURE IF EXISTS `biz_lock_unring` */ /*M!100202 DO 0 */
//

-- Gives the doorbell back, however often this session has taken it.
/*!80017 CREATE */ /*M!100202 CREATE OR REPLACE */ PROCEDURE `biz_lock_unring` (
  IN in_bell VARCHAR(64) CHARACTER SET ascii)
  SQL SECURITY DEFINER
  COMMENT 'bizlock routines 1'
BEGIN
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END; -- a server without doorbells

  WHILE IS_USED_LOCK(in_bell) <=> CONNECTION_ID() DO
    DO RELEASE_LOCK(in_bell);
  END WHILE;
END
//

/*!80017 DROP PROCEDURE IF EXISTS `biz_lock_nap` */ /*M!100202 DO 0 */
//

-- On MariaDB a session in SLEEP() delays the wake-ups of all others in SLEEP(). So whoever sleeps has
-- a named lock, as C clients do, and all others wait for that lock.
/*!80017 CREATE */ /*M!100202 CREATE OR REPLACE */ PROCEDURE `biz_lock_nap` (IN in_s DOUBLE)
  SQL SECURITY DEFINER
  COMMENT 'bizlock routines 1'
BEGIN
  IF VERSION() NOT LIKE '%MariaDB%' THEN
    DO SLEEP(in_s);
  ELSEIF GET_LOCK('bizsleep', 0) = 1 THEN
    DO SLEEP(in_s);
    DO RELEASE_LOCK('bizsleep');
  ELSEIF GET_LOCK('bizsleep', in_s) = 1 THEN
    DO RELEASE_LOCK('bizsleep');
  END IF;
END
//

-- ---- take ------------------------------------------------------------------------------------

/*!80017 DROP PROCEDURE IF EXISTS `biz_lock_try` */ /*M!100202 DO 0 */
//

-- out_fence NULL: not granted. Then out_holder has the lock, for out_left_ms more; out_holder '': nobody
-- has it, and it rests; NULL: another contender is about to take it. The same owner is a contender
-- like any other: two programs that chose one name never hold one lock.
--
-- Transactions are the routine's own and READ COMMITTED, unless the caller has one open. SET
-- TRANSACTION is refused (1568) exactly then.
/*!80017 CREATE */ /*M!100202 CREATE OR REPLACE */ PROCEDURE `biz_lock_try` (
  IN in_type TEXT CHARACTER SET utf8mb4 /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100202 COLLATE utf8mb4_nopad_bin */,
  IN in_id TEXT CHARACTER SET utf8mb4 /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100202 COLLATE utf8mb4_nopad_bin */,
  IN in_owner TEXT CHARACTER SET utf8mb4, IN in_lease_ms BIGINT,
  OUT out_fence BIGINT UNSIGNED, OUT out_holder VARCHAR(191) CHARACTER SET ascii,
  OUT out_left_ms BIGINT)
  SQL SECURITY DEFINER MODIFIES SQL DATA
  COMMENT 'bizlock routines 1'
BEGIN
  DECLARE v_owner VARCHAR(191) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_bell VARCHAR(64) CHARACTER SET ascii;
  DECLARE v_last BIGINT UNSIGNED DEFAULT LAST_INSERT_ID();
  DECLARE v_row_wait BIGINT UNSIGNED DEFAULT @@SESSION.innodb_lock_wait_timeout;
  DECLARE v_table_wait BIGINT UNSIGNED DEFAULT @@SESSION.lock_wait_timeout;
  DECLARE v_in_tx, v_rung, v_past, v_there, v_placed BOOLEAN DEFAULT FALSE;
  DECLARE v_bells BOOLEAN DEFAULT TRUE;
  DECLARE v_fence BIGINT UNSIGNED DEFAULT NULL;
  DECLARE v_left BIGINT DEFAULT NULL;
  DECLARE v_bell_by BIGINT UNSIGNED DEFAULT NULL;
  DECLARE v_naps, v_dead, v_free INT DEFAULT 0;

  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    IF NOT v_in_tx THEN
      ROLLBACK AND NO CHAIN NO RELEASE;
    END IF;
    IF v_rung THEN
      CALL `biz_lock_unring`(v_bell);
    END IF;
    SET SESSION innodb_lock_wait_timeout = v_row_wait, SESSION lock_wait_timeout = v_table_wait;
    RESIGNAL;
  END;

  BEGIN
    DECLARE CONTINUE HANDLER FOR 1568 SET v_in_tx = TRUE;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
  END;
  SET out_fence = NULL, out_holder = NULL, out_left_ms = 0;
  CALL `biz_lock_args`(in_type, in_id, in_owner, 1, in_lease_ms, v_owner, v_bell);
  -- timestamp: a clock that the session has set would end leases of others.
  SET SESSION timestamp = DEFAULT, SESSION innodb_lock_wait_timeout = 1, SESSION lock_wait_timeout = 1;

  attempt: BEGIN
    -- Somebody else made, changed or locked the row just now. In a transaction of the caller's that row
    -- may be locked by now, and its holder could not renew it until the transaction ends.
    DECLARE EXIT HANDLER FOR 1020, 1048, 1205, 1213
    BEGIN
      SET out_fence = NULL;
      IF v_in_tx THEN
        ROLLBACK AND NO CHAIN NO RELEASE;
        SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT =
          'bizlock: another contender came first; the transaction is rolled back';
      END IF;
    END;

    -- Look, without locking anything.
    SELECT MAX(owner), MAX(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), timeout)), COUNT(*)
      INTO out_holder, v_left, v_there
      FROM `biz_lock` WHERE biz_id = in_id AND biz_type = in_type AND slot = 0;
    IF v_left > 0 THEN
      SET out_left_ms = CEIL(v_left / 1000);
      LEAVE attempt;
    END IF;
    IF v_there AND v_in_tx THEN
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =
        'bizlock: an earlier holder left a row; COMMIT first: no transaction can take over';
    END IF;
    IF v_there THEN -- under such a row others may share the lock
      SELECT MAX(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), timeout)) INTO v_left
        FROM `biz_lock` WHERE biz_id = in_id AND biz_type = in_type AND slot > 0;
      IF v_left > 0 THEN
        SET out_left_ms = CEIL(v_left / 1000), out_holder = (SELECT owner FROM `biz_lock`
          WHERE biz_id = in_id AND biz_type = in_type AND slot > 0 ORDER BY timeout DESC LIMIT 1);
        LEAVE attempt;
      END IF;
    END IF;

    -- The doorbell: who has it is the one contender that goes for the row. A contender that hangs is
    -- passed after 250 ms. Where the server has no doorbells nobody waits for anybody.
    BEGIN
      DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET v_bells = FALSE;
      SET v_bell_by = IS_USED_LOCK(v_bell);
      SET v_rung = GET_LOCK(v_bell, 0) <=> 1;
    END;
    WHILE v_bells AND NOT v_rung AND NOT v_past DO
      IF v_in_tx OR NOT (IS_USED_LOCK(v_bell) <=> v_bell_by) THEN
        SET out_holder = NULL;
        LEAVE attempt;
      END IF;
      BEGIN
        DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; -- two sessions wait for each other
        -- MySQL's GET_LOCK knows only seconds.
        SET v_rung = GET_LOCK(v_bell, IF(VERSION() LIKE '%MariaDB%', 0.05, SLEEP(0.05))) <=> 1;
      END;
      SET v_naps = v_naps + 1, v_past = NOT v_rung AND v_naps >= 5;
      SELECT MAX(owner), MAX(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), timeout)), COUNT(*)
        INTO out_holder, v_left, v_there
        FROM `biz_lock` WHERE biz_id = in_id AND biz_type = in_type AND slot = 0;
      IF v_left > 0 THEN
        SET out_left_ms = CEIL(v_left / 1000);
        LEAVE attempt;
      END IF;
    END WHILE;

    -- A row that is there may be fenced by a transaction: then its holder still has the lock.
    IF v_there THEN
      IF NOT v_in_tx THEN
        COMMIT AND NO CHAIN NO RELEASE;
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
      END IF;
      SELECT COUNT(*) INTO v_free FROM `biz_lock`
        WHERE biz_id = in_id AND biz_type = in_type AND slot = 0 AND timeout <= UTC_TIMESTAMP(6)
        FOR UPDATE SKIP LOCKED;
      IF v_free = 0 THEN
        CALL `biz_lock_nap`(0.05); -- whoever calls again at once would do so for nothing
        LEAVE attempt;
      END IF;
    END IF;
    SET out_holder = NULL;
    IF NOT v_in_tx THEN
      COMMIT AND NO CHAIN NO RELEASE;
      SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
    END IF;
    INSERT INTO `biz_lock`
        (biz_id, biz_type, slot, owner, reentrant, timeout, bell, note, gmt_create, gmt_modified)
      VALUES (in_id, in_type, 0, v_owner, 1, UTC_TIMESTAMP(6) + INTERVAL in_lease_ms * 1000 MICROSECOND,
        0, '', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
      ON DUPLICATE KEY UPDATE taken_from = IF(reentrant = 0, taken_from, fence),
        reentrant = IF(v_there AND timeout <= UTC_TIMESTAMP(6), VALUES(reentrant), NULL),
        fence = VALUES(fence) + 0 * LAST_INSERT_ID(VALUES(fence)), owner = VALUES(owner),
        bell = VALUES(bell), note = VALUES(note), gmt_create = VALUES(gmt_create),
        gmt_modified = VALUES(gmt_modified), timeout = VALUES(timeout);
    SET v_fence = LAST_INSERT_ID(), v_placed = v_there;
    IF NOT v_in_tx THEN
      COMMIT AND NO CHAIN NO RELEASE;
      SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
    END IF;

    -- Slot 0 was there, so others may share the lock: they are looked for once they can see that slot
    -- 0 is taken. The rows of those that have died go, unless a transaction has fenced them.
    IF v_there THEN
      SELECT MAX(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), timeout)), COUNT(*) INTO v_left, v_dead
        FROM `biz_lock` WHERE biz_id = in_id AND biz_type = in_type AND slot > 0 AND owner <> '';
      IF v_left > 0 THEN
        LEAVE attempt;
      END IF;
      IF v_dead > 0 THEN
        SELECT COUNT(*) INTO v_free FROM `biz_lock`
          WHERE biz_id = in_id AND biz_type = in_type AND slot > 0 AND owner <> ''
            AND timeout <= UTC_TIMESTAMP(6) FOR UPDATE SKIP LOCKED;
        IF v_free < v_dead THEN
          LEAVE attempt;
        END IF;
        COMMIT AND NO CHAIN NO RELEASE;
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
        DELETE FROM `biz_lock` WHERE biz_id = in_id AND biz_type = in_type AND slot > 0 AND owner <> ''
          AND timeout <= UTC_TIMESTAMP(6);
        IF ROW_COUNT() < v_dead THEN
          LEAVE attempt;
        END IF;
      END IF;
      COMMIT AND NO CHAIN NO RELEASE;
      SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
    END IF;

    -- The fence is drawn again now that the row is there: between the first draw and the row others
    -- may have held the lock by larger ones. Who went past the doorbell has to outwait, below, the
    -- contender that has it.
    INSERT INTO `biz_lock` (biz_id, biz_type, slot, owner, reentrant, timeout, gmt_create, gmt_modified)
      VALUES (in_id, in_type, 0, v_owner, 1,
        UTC_TIMESTAMP(6) + INTERVAL in_lease_ms * 1000 + IF(v_past, 100000, 0) MICROSECOND,
        UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
      ON DUPLICATE KEY UPDATE
        reentrant = IF(owner = v_owner AND fence = v_fence AND timeout > UTC_TIMESTAMP(6), 1, NULL),
        fence = VALUES(fence) + 0 * LAST_INSERT_ID(VALUES(fence)), gmt_create = VALUES(gmt_create),
        gmt_modified = VALUES(gmt_modified), timeout = VALUES(timeout);
    IF ROW_COUNT() = 1 THEN -- somebody has removed the row meanwhile, and this is another one
      SET v_fence = LAST_INSERT_ID(), v_placed = FALSE;
      LEAVE attempt;
    END IF;
    SET out_fence = LAST_INSERT_ID(), v_fence = out_fence;
  END attempt;

  IF NOT v_in_tx THEN
    COMMIT AND NO CHAIN NO RELEASE;
  END IF;
  -- Not granted after all: the row goes. If slot 0 was there, it stays as nobody's, because others may
  -- share the lock under it.
  IF out_fence IS NULL AND v_placed THEN
    UPDATE `biz_lock` SET owner = '', reentrant = 0, bell = 0, timeout = UTC_TIMESTAMP(6),
        gmt_modified = UTC_TIMESTAMP(6)
      WHERE biz_id = in_id AND biz_type = in_type AND slot = 0
        AND owner = v_owner AND fence = v_fence;
    COMMIT AND NO CHAIN NO RELEASE;
  ELSEIF out_fence IS NULL AND v_fence IS NOT NULL THEN
    DELETE FROM `biz_lock` WHERE biz_id = in_id AND biz_type = in_type AND slot = 0
      AND owner = v_owner AND fence = v_fence;
    IF NOT v_in_tx THEN
      COMMIT AND NO CHAIN NO RELEASE;
    END IF;
  END IF;
  IF v_past AND out_fence IS NOT NULL AND IS_USED_LOCK(v_bell) IS NOT NULL THEN
    CALL `biz_lock_nap`(0.1);
  END IF;
  -- Also if it was had before, by biz_lock_wait. A session in a pool would keep it for hours.
  CALL `biz_lock_unring`(v_bell);
  SET v_rung = FALSE;
  IF out_fence IS NULL AND v_fence IS NOT NULL THEN
    CALL `biz_lock_wake`(v_bell);
  END IF;
  IF out_fence >= 4611686018427387904 OR out_fence = 0 THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'bizlock: no fence is so large: run bizlock doctor';
  END IF;
  IF out_fence IS NOT NULL THEN
    SET out_holder = v_owner, out_left_ms = in_lease_ms;
  END IF;
  SET SESSION innodb_lock_wait_timeout = v_row_wait, SESSION lock_wait_timeout = v_table_wait;
  DO LAST_INSERT_ID(v_last);
END
//

/*!80017 DROP PROCEDURE IF EXISTS `biz_lock_wait` */ /*M!100202 DO 0 */
//

-- Waits for in_wait_ms at most until biz_lock_try can have the lock, in one line with the clients: at
-- the doorbell. It takes nothing: a program that dies while it waits must not have the lock when its
-- turn comes. It keeps the doorbell for the biz_lock_try that has to follow in the same session.
/*!80017 CREATE */ /*M!100202 CREATE OR REPLACE */ PROCEDURE `biz_lock_wait` (
  IN in_type TEXT CHARACTER SET utf8mb4 /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100202 COLLATE utf8mb4_nopad_bin */,
  IN in_id TEXT CHARACTER SET utf8mb4 /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100202 COLLATE utf8mb4_nopad_bin */,
  IN in_wait_ms BIGINT)
  SQL SECURITY DEFINER MODIFIES SQL DATA
  COMMENT 'bizlock routines 1'
BEGIN
  DECLARE v_owner VARCHAR(191) CHARACTER SET ascii;
  DECLARE v_bell VARCHAR(64) CHARACTER SET ascii;
  DECLARE v_end DATETIME(6);
  DECLARE v_rest, v_nap DOUBLE DEFAULT 0.001; -- seconds
  DECLARE v_in_tx, v_rung, v_stuck BOOLEAN DEFAULT FALSE;
  DECLARE v_in_way INT;
  DECLARE v_mariadb BOOLEAN DEFAULT VERSION() LIKE '%MariaDB%';

  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    IF NOT v_in_tx THEN
      ROLLBACK AND NO CHAIN NO RELEASE;
    END IF;
    IF v_rung THEN
      CALL `biz_lock_unring`(v_bell);
    END IF;
    RESIGNAL;
  END;

  BEGIN
    DECLARE CONTINUE HANDLER FOR 1568 SET v_in_tx = TRUE;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
  END;
  CALL `biz_lock_args`(in_type, in_id, 'nobody', 1, 100, v_owner, v_bell);
  IF in_wait_ms IS NULL OR in_wait_ms NOT BETWEEN 0 AND 86400000 THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'bizlock: the wait has to be 0 to 86400000 milliseconds';
  ELSEIF v_in_tx THEN -- it would not see that others give the lock back
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'bizlock: COMMIT first: no transaction can wait';
  END IF;
  SET SESSION timestamp = DEFAULT;
  SET v_end = UTC_TIMESTAMP(6) + INTERVAL in_wait_ms * 1000 MICROSECOND;
  turn: LOOP
    SET v_rest = GREATEST(0, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), v_end) / 1000000);
    IF NOT v_rung THEN
      BEGIN
        DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; -- a server without doorbells
        -- MySQL's GET_LOCK knows only seconds.
        SET v_rung = GET_LOCK(v_bell, IF(v_mariadb, LEAST(v_rest, 1), v_rest >= 1)) <=> 1;
      END;
    END IF;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
    SELECT COUNT(*) INTO v_in_way FROM `biz_lock`
      WHERE biz_id = in_id AND biz_type = in_type AND timeout > UTC_TIMESTAMP(6);
    COMMIT AND NO CHAIN NO RELEASE;
    IF v_in_way = 0 AND (v_rung OR v_stuck) THEN
      LEAVE turn;
    ELSEIF v_rest <= 0 THEN
      CALL `biz_lock_unring`(v_bell);
      LEAVE turn;
    END IF;
    -- Free, but somebody else has had the doorbell for a second: biz_lock_try passes an owner that hangs.
    SET v_stuck = v_in_way = 0 AND NOT v_rung;
    CALL `biz_lock_nap`(LEAST(v_rest, v_nap));
    SET v_nap = LEAST(1.5 * v_nap, 0.02); -- short holds end soon, long ones are not worth many looks
  END LOOP;
END
//

-- ---- keep and give back -----------------------------------------------------------------------

/*!80017 DROP PROCEDURE IF EXISTS `biz_lock_renew` */ /*M!100202 DO 0 */
//

-- out_ok 0: the lease was over, or somebody broke the lock.
/*!80017 CREATE */ /*M!100202 CREATE OR REPLACE */ PROCEDURE `biz_lock_renew` (
  IN in_type TEXT CHARACTER SET utf8mb4 /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100202 COLLATE utf8mb4_nopad_bin */,
  IN in_id TEXT CHARACTER SET utf8mb4 /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100202 COLLATE utf8mb4_nopad_bin */,
  IN in_owner TEXT CHARACTER SET utf8mb4, IN in_fence BIGINT,
  IN in_lease_ms BIGINT, OUT out_ok INT)
  SQL SECURITY DEFINER MODIFIES SQL DATA
  COMMENT 'bizlock routines 1'
BEGIN
  DECLARE v_owner VARCHAR(191) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_bell VARCHAR(64) CHARACTER SET ascii;
  DECLARE v_row_wait BIGINT UNSIGNED DEFAULT @@SESSION.innodb_lock_wait_timeout;
  DECLARE v_table_wait BIGINT UNSIGNED DEFAULT @@SESSION.lock_wait_timeout;
  DECLARE v_in_tx BOOLEAN DEFAULT FALSE;

  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    IF NOT v_in_tx THEN
      ROLLBACK AND NO CHAIN NO RELEASE;
    END IF;
    SET SESSION innodb_lock_wait_timeout = v_row_wait, SESSION lock_wait_timeout = v_table_wait;
    RESIGNAL;
  END;

  BEGIN
    DECLARE CONTINUE HANDLER FOR 1568 SET v_in_tx = TRUE;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
  END;
  SET out_ok = 0;
  CALL `biz_lock_args`(in_type, in_id, in_owner, in_fence, in_lease_ms, v_owner, v_bell);
  -- timestamp: a clock that the session has set would end leases of others.
  SET SESSION timestamp = DEFAULT, SESSION innodb_lock_wait_timeout = 1, SESSION lock_wait_timeout = 1;
  UPDATE `biz_lock` SET timeout = UTC_TIMESTAMP(6) + INTERVAL in_lease_ms * 1000 MICROSECOND,
      gmt_modified = UTC_TIMESTAMP(6)
    WHERE biz_id = in_id AND biz_type = in_type AND slot = 0
      AND owner = v_owner AND fence = in_fence
      AND timeout > UTC_TIMESTAMP(6);
  SET out_ok = ROW_COUNT() > 0;
  IF NOT v_in_tx THEN
    COMMIT AND NO CHAIN NO RELEASE;
  END IF;
  SET SESSION innodb_lock_wait_timeout = v_row_wait, SESSION lock_wait_timeout = v_table_wait;
END
//

/*!80017 DROP PROCEDURE IF EXISTS `biz_lock_release` */ /*M!100202 DO 0 */
//

-- out_ok 0: the lease was over, or somebody broke the lock. A row whose lease is over goes, too.
/*!80017 CREATE */ /*M!100202 CREATE OR REPLACE */ PROCEDURE `biz_lock_release` (
  IN in_type TEXT CHARACTER SET utf8mb4 /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100202 COLLATE utf8mb4_nopad_bin */,
  IN in_id TEXT CHARACTER SET utf8mb4 /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100202 COLLATE utf8mb4_nopad_bin */,
  IN in_owner TEXT CHARACTER SET utf8mb4, IN in_fence BIGINT,
  OUT out_ok INT)
  SQL SECURITY DEFINER MODIFIES SQL DATA
  COMMENT 'bizlock routines 1'
BEGIN
  DECLARE v_owner VARCHAR(191) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_bell VARCHAR(64) CHARACTER SET ascii;
  DECLARE v_row_wait BIGINT UNSIGNED DEFAULT @@SESSION.innodb_lock_wait_timeout;
  DECLARE v_table_wait BIGINT UNSIGNED DEFAULT @@SESSION.lock_wait_timeout;
  DECLARE v_in_tx BOOLEAN DEFAULT FALSE;

  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    IF NOT v_in_tx THEN
      ROLLBACK AND NO CHAIN NO RELEASE;
    END IF;
    SET SESSION innodb_lock_wait_timeout = v_row_wait, SESSION lock_wait_timeout = v_table_wait;
    RESIGNAL;
  END;

  BEGIN
    DECLARE CONTINUE HANDLER FOR 1568 SET v_in_tx = TRUE;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
  END;
  SET out_ok = 0;
  CALL `biz_lock_args`(in_type, in_id, in_owner, in_fence, 100, v_owner, v_bell);
  -- timestamp: a clock that the session has set would end leases of others.
  SET SESSION timestamp = DEFAULT, SESSION innodb_lock_wait_timeout = 1, SESSION lock_wait_timeout = 1;
  DELETE FROM `biz_lock` WHERE biz_id = in_id AND biz_type = in_type AND slot = 0
      AND owner = v_owner AND fence = in_fence
      AND timeout > UTC_TIMESTAMP(6);
  SET out_ok = ROW_COUNT() > 0;
  IF NOT out_ok THEN
    DELETE FROM `biz_lock` WHERE biz_id = in_id AND biz_type = in_type AND slot = 0
      AND owner = v_owner AND fence = in_fence;
  END IF;
  IF NOT v_in_tx THEN
    COMMIT AND NO CHAIN NO RELEASE;
    CALL `biz_lock_wake`(v_bell);
  END IF;
  SET SESSION innodb_lock_wait_timeout = v_row_wait, SESSION lock_wait_timeout = v_table_wait;
END
//

-- ---- look ------------------------------------------------------------------------------------

-- Who holds what. Leases that are over, rests, and contenders that wait are left out.
CREATE OR REPLACE SQL SECURITY DEFINER VIEW `biz_locks` AS
  SELECT biz_type, biz_id, slot, owner, fence, reentrant AS depth, gmt_create AS since, timeout AS until,
    CAST(TIMESTAMPDIFF(MICROSECOND, gmt_create, UTC_TIMESTAMP(6)) DIV 1000 AS SIGNED) AS held_ms,
    CAST(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), timeout) DIV 1000 AS SIGNED) AS left_ms, note
  FROM `biz_lock` WHERE owner <> '' AND reentrant > 0 AND timeout > UTC_TIMESTAMP(6)
//

SET SESSION sql_mode = @bizlock_sql_mode
//
DELIMITER ;
