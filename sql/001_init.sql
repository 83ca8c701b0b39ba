-- bizlock, schema version 1. MySQL 8.0.17 and later, MariaDB 10.6 and later.
-- Apply it to the database of your choice, as often as you like:
--     mysql shop < sql/001_init.sql
--
-- Keys compare byte for byte: a case-blind, accent-blind or blank-padding
-- collation would make two different keys one lock. The two servers name the
-- right collation differently; each reads its own comment and skips the other's.

CREATE TABLE IF NOT EXISTS `biz_lock` (
  `biz_id` VARCHAR(128) NOT NULL
    COMMENT 'which one is locked; acquire writes it',
  `biz_type` VARCHAR(64) NOT NULL
    COMMENT 'what kind of thing biz_id names; acquire writes it',
  `slot` INT UNSIGNED NOT NULL DEFAULT 0
    COMMENT '0: who has the lock alone, or waits for the others to leave, or nobody; from 1 on: who shares it, which nobody does without a row 0; acquire writes it',
  `at_most` INT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'how many may share it, as this holder has it, for people who look; 0: any number, or not shared; acquire writes it',
  `fence` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT
    COMMENT 'fencing token; a new, larger one at first acquisition and at takeover',
  `owner` VARCHAR(191) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'who holds, tid@pid.nonce@host; empty: nobody; whatever begins or ends a hold writes it',
  `reentrant` INT UNSIGNED NOT NULL
    COMMENT 'depth of the hold, 0: nobody has it yet, or any more; acquire, re-entry and release write the absolute value',
  `timeout` DATETIME(6) NOT NULL
    COMMENT 'when the lease ends, UTC by the clock of the server; acquire and renew write it',
  `bell` BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'connection that has the doorbell of this hold, 0: none; first acquisition and takeover write it',
  `taken_from` BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'fence of the hold that was taken over, 0: none; a takeover writes it, and a free row keeps it for the next one',
  `note` VARCHAR(255) NOT NULL DEFAULT ''
    COMMENT 'why, for people who look; first acquisition and takeover write it',
  `gmt_create` DATETIME(6) NOT NULL
    COMMENT 'when the hold began, UTC; first acquisition and takeover write it',
  `gmt_modified` DATETIME(6) NOT NULL
    COMMENT 'last change, UTC; every statement writes it',
  -- The primary key is the lock: one statement on it asks for the exclusive row
  -- lock at once, where a secondary unique key would take shared locks first and
  -- deadlock. Each sharer has a row of its own, so no sharer waits for the row of
  -- another. The primary key keeps two sharers from one slot. `fence` has a key only
  -- because AUTO_INCREMENT needs a key.
  PRIMARY KEY (`biz_id`, `biz_type`, `slot`),
  KEY `fence` (`fence`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
  /*!80017 COLLATE=utf8mb4_0900_bin */ /*M!100202 COLLATE=utf8mb4_nopad_bin */
  COMMENT='bizlock: one row for each hold, live or stale, and a row of slot 0 for each lock that is shared';

CREATE TABLE IF NOT EXISTS `biz_row_lock` (
  `biz_id` VARCHAR(128) NOT NULL
    COMMENT 'which one; the first row lock of a key writes it',
  `biz_type` VARCHAR(64) NOT NULL
    COMMENT 'what kind of thing biz_id names; the first row lock of a key writes it',
  `gmt_create` DATETIME(6) NOT NULL
    COMMENT 'when the row lock was last asked for, UTC, to ten minutes; row locks write it',
  PRIMARY KEY (`biz_id`, `biz_type`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
  /*!80017 COLLATE=utf8mb4_0900_bin */ /*M!100202 COLLATE=utf8mb4_nopad_bin */
  COMMENT='bizlock: rows to be locked by SELECT ... FOR UPDATE; they say nothing';

-- The clients of one database are never upgraded at one moment. So a client refuses the
-- tables only if needs_client is the number of a file that it does not know. A later
-- file that only adds a table, or a column with a default, repeats the needs_client of
-- the file before it, and earlier clients go on. A file that changes what a row means
-- has its own number as needs_client.
CREATE TABLE IF NOT EXISTS `biz_lock_schema` (
  `version` INT UNSIGNED NOT NULL
    COMMENT 'number of the migration file; the migration writes it',
  `needs_client` INT UNSIGNED NOT NULL
    COMMENT 'number of the last migration file that a client has to know; the migration writes it',
  `applied_at` DATETIME(6) NOT NULL
    COMMENT 'when it was applied, UTC; the migration writes it',
  PRIMARY KEY (`version`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
  COMMENT='bizlock: which migrations have been applied';

INSERT INTO `biz_lock_schema` (`version`, `needs_client`, `applied_at`)
  VALUES (1, 1, UTC_TIMESTAMP(6))
  ON DUPLICATE KEY UPDATE `version` = `version`;
