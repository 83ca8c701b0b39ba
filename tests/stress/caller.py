"""A program that takes locks by CALL, as docs/languages.md has it, when its standard input says so:

take ID OWNER LEASE_MS   waits for its turn until it has the lock; prints the fence
give ID OWNER FENCE      prints 1, or 0 if the lock was lost
"""
import os, sys, pymysql

where = {"host": os.environ.get("BIZLOCK_TEST_HOST", ""), "port": int(os.environ.get("BIZLOCK_TEST_PORT", "3306"))}
if os.environ.get("BIZLOCK_TEST_SOCKET"):
    where = {"unix_socket": os.environ["BIZLOCK_TEST_SOCKET"]}
db = pymysql.connect(user=os.environ["BIZLOCK_TEST_USER"], password=os.environ.get("BIZLOCK_TEST_PASSWORD", ""),
                     database=sys.argv[1], autocommit=True, **where)
sql = db.cursor()

for line in sys.stdin:
    what, name, owner, number = line.split()
    answer = None
    if what == "give":
        sql.execute("CALL biz_lock_release('test', %s, %s, %s, @ok)", (name, owner, number))
        sql.execute("SELECT @ok")
        answer = sql.fetchone()[0]
    while answer is None:
        sql.execute("CALL biz_lock_wait('test', %s, 20000)", (name,))
        sql.execute("CALL biz_lock_try('test', %s, %s, %s, @fence, @holder, @left_ms)", (name, owner, number))
        sql.execute("SELECT @fence")
        answer = sql.fetchone()[0]
    print(answer, flush=True)
