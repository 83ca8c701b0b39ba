-- bizlock, schema version 2: what is remembered of the runs of jobs. It only adds a table, so
-- clients that know version 1 alone go on. Clients that know it go on without the table, too.

CREATE TABLE IF NOT EXISTS `biz_run` (
  `biz_id` VARCHAR(128) NOT NULL
    COMMENT 'which job; the beginning of its first run writes it',
  `biz_type` VARCHAR(64) NOT NULL
    COMMENT 'what kind of thing biz_id names; the beginning of its first run writes it',
  `fence` BIGINT UNSIGNED NOT NULL
    COMMENT 'fence of the hold under which the last run runs, or ran; the beginning of a run writes it',
  `owner` VARCHAR(191) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'who ran it last, name@pid.nonce@host; the beginning of a run writes it',
  `lease_ms` INT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'lease of a hold whose row in biz_lock ends later, because the lock is to rest; 0: that row tells; the beginning of a run writes it',
  `outcome` VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'running, done, failed or lost; running without the lock: its process died; beginning and end of a run write it',
  `exit_code` INT DEFAULT NULL
    COMMENT 'of the last run, NULL: it has none; beginning and end of a run write it',
  `exit_signal` INT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'which ended the last run, 0: none; beginning and end of a run write it',
  `began_at` DATETIME(6) NOT NULL
    COMMENT 'when the last run began, UTC; the beginning of a run writes it',
  `ended_at` DATETIME(6) DEFAULT NULL
    COMMENT 'when the last run ended, UTC, NULL: it has not, or nobody knows; beginning and end of a run write it',
  `succeeded_at` DATETIME(6) DEFAULT NULL
    COMMENT 'when a run last ended as done, UTC, NULL: none has; the end of a run writes it',
  `runs` BIGINT UNSIGNED NOT NULL
    COMMENT 'how many have begun; the beginning of a run writes it',
  `successes` BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'how many ended as done; the end of a run writes it',
  `since_success` BIGINT UNSIGNED NOT NULL
    COMMENT 'how many have begun since the last one that ended as done; beginning and end of a run write it',
  PRIMARY KEY (`biz_id`, `biz_type`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
  /*!80017 COLLATE=utf8mb4_0900_bin */ /*M!100202 COLLATE=utf8mb4_nopad_bin */
  COMMENT='bizlock: one row for each job whose runs are recorded: the last run, the last success, counts';

INSERT INTO `biz_lock_schema` (`version`, `needs_client`, `applied_at`)
  VALUES (2, 1, UTC_TIMESTAMP(6))
  ON DUPLICATE KEY UPDATE `version` = `version`;
