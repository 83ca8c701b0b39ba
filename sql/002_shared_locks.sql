-- bizlock, schema version 2: shared locks. It adds a table and changes none, so
-- clients of version 1 go on meanwhile and afterwards. biz_lock_schema does not
-- list it, because they refuse a database in which that lists more than they
-- know: the table is there, and that tells. Apply it after 001_init.sql, as often
-- as you like:
--     mysql shop < sql/002_shared_locks.sql

CREATE TABLE IF NOT EXISTS `biz_shared_lock` (
  `biz_id` VARCHAR(128) NOT NULL
    COMMENT 'which one is locked; acquire writes it',
  `biz_type` VARCHAR(64) NOT NULL
    COMMENT 'what kind of thing biz_id names; acquire writes it',
  `slot` INT UNSIGNED NOT NULL
    COMMENT 'which of those that share it; 0: who holds it exclusively, or waits for the others to leave; acquire writes it',
  `at_most` INT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'how many may share it, as this holder has it, for people who look; 0: any number, or held exclusively; acquire writes it',
  `fence` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT
    COMMENT 'fencing token; a new, larger one at first acquisition and at takeover',
  `owner` VARCHAR(191) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'who holds, tid@pid.nonce@host; first acquisition and takeover write it',
  `reentrant` INT UNSIGNED NOT NULL
    COMMENT 'depth of the hold; acquire, re-entry and release write the absolute value',
  `timeout` DATETIME(6) NOT NULL
    COMMENT 'when the lease ends, UTC by the clock of the server; acquire and renew write it',
  `bell` BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'connection that has the doorbell of this hold, 0: none; first acquisition and takeover write it',
  `taken_from` BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'fence of the hold that was taken over, 0: none; first acquisition and takeover write it',
  `note` VARCHAR(255) NOT NULL DEFAULT ''
    COMMENT 'why, for people who look; first acquisition and takeover write it',
  `gmt_create` DATETIME(6) NOT NULL
    COMMENT 'when the hold began, UTC; first acquisition and takeover write it',
  `gmt_modified` DATETIME(6) NOT NULL
    COMMENT 'last change, UTC; every statement writes it',
  -- Each holder has a row of its own, so that none waits for another one's, and
  -- the primary key is what keeps two from having the same slot.
  PRIMARY KEY (`biz_id`, `biz_type`, `slot`),
  KEY `fence` (`fence`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
  /*!80017 COLLATE=utf8mb4_0900_bin */ /*M!100202 COLLATE=utf8mb4_nopad_bin */
  COMMENT='bizlock: one row for each hold of a shared lock, live or stale';
