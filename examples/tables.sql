-- The tables of the examples, in the database that has bizlock's: mysql shop < examples/tables.sql

-- standby: what its leaders did
CREATE TABLE IF NOT EXISTS standby_log (
	id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
	fence BIGINT UNSIGNED NOT NULL,
	pid INT NOT NULL,
	at DATETIME(6) NOT NULL
) ENGINE = InnoDB;

-- jobs: what is to be done. state: 0 to do, 1 begun, 2 done; fence: of the holder that set it
CREATE TABLE IF NOT EXISTS job (
	id INT UNSIGNED PRIMARY KEY,
	state INT NOT NULL DEFAULT 0,
	fence BIGINT UNSIGNED NOT NULL DEFAULT 0
) ENGINE = InnoDB;
