<?php
/* The same as caller.py, in PHP. */
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$socket = getenv("BIZLOCK_TEST_SOCKET") ?: null;
$db = new mysqli($socket ? "localhost" : getenv("BIZLOCK_TEST_HOST"), getenv("BIZLOCK_TEST_USER"),
	getenv("BIZLOCK_TEST_PASSWORD") ?: "", $argv[1], (int)getenv("BIZLOCK_TEST_PORT") ?: 3306, $socket);

while (($line = fgets(STDIN)) !== false) {
	[$what, $name, $owner, $number] = explode(" ", trim($line));
	$answer = null;
	if ($what == "give") {
		$db->execute_query("CALL biz_lock_release('test', ?, ?, ?, @ok)", [$name, $owner, $number]);
		$answer = $db->query("SELECT @ok")->fetch_row()[0];
	}
	while ($answer === null) {
		$db->execute_query("CALL biz_lock_wait('test', ?, 20000)", [$name]);
		$db->execute_query("CALL biz_lock_try('test', ?, ?, ?, @fence, @holder, @left_ms)", [$name, $owner, $number]);
		$answer = $db->query("SELECT @fence")->fetch_row()[0];
	}
	echo $answer, "\n";
}
