/* Many processes sell one stock, twice: first as naive shop code does it, then
 * with a lock around the same code. Afterwards the books are compared: what was
 * sold and what is left must add up to what was there.
 *
 * The shop works on connections of its own; bizlock never touches them. */
#define _DEFAULT_SOURCE 1
#include <bizlock_tx.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef EXAMPLES_DIR
#define EXAMPLES_DIR "examples"
#endif

#define PAUSE_US 10000 /* between reading the stock and writing it back */
#define ORDERS_MAX 20000

static const char catalogue[] =
        "INSERT INTO shop_product (sku, name, price, initial) VALUES"
        "('GAR-401','Pruning shears',32.50,140),('GAR-402','Watering can, 9 l',27.90,110),"
        "('GAR-403','Work gloves, size 9',11.90,260),('GAR-404','Clay pot, 24 cm',14.90,180),"
        "('GAR-405','Garden hose, 25 m',43.90,90),('GAR-406','Lavender, in pot',6.90,240),"
        "('HOM-201','Wool blanket, grey',69.00,130),('HOM-202','Desk lamp, brass',89.50,150),"
        "('HOM-203','Door mat, coir',19.90,170),('HOM-204','Wall clock, 30 cm',34.90,100),"
        "('HOM-205','Linen curtain',45.90,160),('HOM-206','Beeswax candle',8.90,200),"
        "('KIT-101','Moka pot, 6 cups',29.90,210),('KIT-102','Iron pan, 28 cm',54.50,380),"
        "('KIT-103','Bread knife',39.00,190),('KIT-104','Bread tin, 30 cm',16.95,140),"
        "('KIT-105','Kitchen scale, 5 kg',24.50,310),('KIT-106','Pepper mill',38.90,160),"
        "('OFF-301','Notebook A5, dotted',7.90,240),('OFF-302','Fountain pen',28.50,120),"
        "('OFF-303','Ink, blue, 50 ml',9.50,280),('OFF-304','Stapler, steel',17.50,300),"
        "('OFF-305','Paper A4, 500 pcs',5.90,230),('OFF-306','Scissors, 21 cm',12.90,200)";

struct order {
	unsigned id;
	int quantity;
	char sku[16];
};

struct shop {
	bizlock *lock;
	MYSQL *db;
};

struct run {
	const char *name;
	bool locked;
	double seconds;
	MYSQL_RES *books; /* a row for each product, columns as in read_books() */
};

/* What the processes share. Whoever fails, or is interrupted, stops them all. */
struct board {
	atomic_ulong next, done;
	atomic_bool stop;
};

static struct board *board;
static bizlock *_Atomic own_lock; /* of this process, for on_signal() */
static struct order orders[ORDERS_MAX];
static unsigned long order_count = ORDERS_MAX, processes = 8;

/* A lock that is held stays locked until its lease ends. */
static _Noreturn __attribute__((format(printf, 1, 2))) void die(const char *format, ...)
{
	va_list args;

	atomic_store(&board->stop, true);
	fflush(stdout);
	fputs("\ninventory: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(1);
}

static unsigned long number(const char *what, const char *text, unsigned long max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || value == 0 || value > max)
		die("%s must be a number from 1 to %lu", what, max);
	return value;
}

/* A client, and a connection to the same server: for each process its own, made after fork(). */
static struct shop shop_open(void)
{
	struct shop s = {.db = mysql_init(NULL)};

	if (bizlock_new(&s.lock) != BIZLOCK_OK || bizlock_open(s.lock) != BIZLOCK_OK)
		die("%s", bizlock_errmsg(s.lock));
	if (s.db == NULL)
		die("out of memory");
	if (bizlock_connect(s.lock, s.db) != BIZLOCK_OK)
		die("%s", bizlock_errmsg(s.lock));
	return s;
}

static void shop_close(struct shop *s)
{
	bizlock_close(s->lock);
	mysql_close(s->db);
}

/* Returns the rows of a SELECT, which the caller frees. */
static __attribute__((format(printf, 2, 3))) MYSQL_RES *run_sql(MYSQL *db, const char *format, ...)
{
	char sql[2048];
	va_list args;
	MYSQL_RES *rows = NULL;

	va_start(args, format);
	vsnprintf(sql, sizeof(sql), format, args);
	va_end(args);
	if (mysql_query(db, sql) == 0)
		rows = mysql_store_result(db);
	if (mysql_errno(db) != 0)
		die("%s\n  in: %.200s", mysql_error(db), sql);
	return rows;
}

static void fill_shop(void)
{
	struct shop s = shop_open();

	run_sql(s.db, "CREATE TABLE IF NOT EXISTS shop_product (sku VARCHAR(16) PRIMARY KEY,"
	              " name VARCHAR(24) NOT NULL, price DECIMAL(8,2) NOT NULL,"
	              " initial INT NOT NULL, stock INT) ENGINE=InnoDB");
	run_sql(s.db, "CREATE TABLE IF NOT EXISTS shop_sale (order_id INT UNSIGNED PRIMARY KEY,"
	              " sku VARCHAR(16) NOT NULL, quantity INT NOT NULL) ENGINE=InnoDB");
	run_sql(s.db, "DELETE FROM shop_sale");
	run_sql(s.db, "DELETE FROM shop_product");
	run_sql(s.db, "%s", catalogue);
	run_sql(s.db, "UPDATE shop_product SET stock = initial");
	shop_close(&s);
}

static void read_books(struct run *run)
{
	struct shop s = shop_open();

	run->books = run_sql(
	        s.db, "SELECT sku, name, initial, sold, stock, sold + stock - initial,"
	              " GREATEST(sold - initial, 0), price FROM (SELECT p.*, COALESCE((SELECT"
	              " SUM(quantity) FROM shop_sale s WHERE s.sku = p.sku), 0) AS sold"
	              " FROM shop_product p) AS book ORDER BY sku");
	shop_close(&s);
}

static int read_stock(MYSQL *db, const char *sku)
{
	MYSQL_RES *rows = run_sql(db, "SELECT stock FROM shop_product WHERE sku = '%s'", sku);
	MYSQL_ROW row = mysql_fetch_row(rows);
	int stock = row != NULL ? (int)strtol(row[0], NULL, 10) : 0;

	if (row == NULL)
		die("there is no product %s", sku);
	mysql_free_result(rows);
	return stock;
}

/* Read, pause, write back, plain autocommit: whoever reads the same stock
 * during the pause sells the same units again. lock: NULL, or the client that holds it. */
static void sell(MYSQL *db, bizlock *lock, const struct order *o)
{
	int stock = read_stock(db, o->sku);

	usleep(PAUSE_US);
	if (stock < o->quantity)
		return;
	if (lock != NULL && bizlock_left_ms(lock, (bizlock_key){"product", o->sku}, NULL) <= 0)
		die("%s: the lease ran out before the sale was booked", o->sku);
	run_sql(db, "UPDATE shop_product SET stock = %d WHERE sku = '%s'", stock - o->quantity,
	        o->sku);
	run_sql(db, "INSERT INTO shop_sale VALUES (%u, '%s', %d)", o->id, o->sku, o->quantity);
}

static void sell_locked(const struct shop *s, const struct order *o)
{
	bizlock_key key = {"product", o->sku};
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	int rc;

	opts.wait_ms = 60000;
	opts.lease_ms = 10000;
	rc = bizlock_acquire(s->lock, key, &opts, NULL);
	if (rc == BIZLOCK_CANCELLED) /* by on_signal(): nothing is held, and nothing is sold */
		_exit(0);
	if (rc != BIZLOCK_OK)
		die("%s", bizlock_errmsg(s->lock));
	sell(s->db, s->lock, o);
	if (bizlock_release(s->lock, key, NULL, NULL) != BIZLOCK_OK)
		die("%s", bizlock_errmsg(s->lock));
}

/* The life of one process: both connections are its own, opened after fork. */
static _Noreturn void seller(bool locked)
{
	struct shop s = shop_open();
	unsigned long i;

	atomic_store(&own_lock, s.lock);
	while (!atomic_load(&board->stop) &&
	       (i = atomic_fetch_add(&board->next, 1)) < order_count) {
		if (locked)
			sell_locked(&s, &orders[i]);
		else
			sell(s.db, NULL, &orders[i]);
		atomic_fetch_add(&board->done, 1);
	}
	atomic_store(&own_lock, NULL); /* on_signal() may come during the close */
	shop_close(&s);
	_exit(0);
}

static void show_progress(const char *name)
{
	static const char bar[] = "########################################";
	unsigned long done = atomic_load(&board->done);

	if (isatty(STDOUT_FILENO))
		printf("\r%-16s [%-40.*s] %lu of %lu orders", name, (int)(40 * done / order_count),
		       bar, done, order_count);
	fflush(stdout);
}

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void start_sellers(bool locked)
{
	pid_t pid = 1;

	fflush(stdout); /* or each process would print it again */
	for (unsigned long i = 0; i < processes && pid > 0; i++)
		pid = fork();
	if (pid == 0)
		seller(locked);
	if (pid < 0)
		die("fork: %s", strerror(errno));
}

/* Until none is left, in whatever way they ended. */
static void watch_sellers(const char *name)
{
	int status = 0;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) >= 0) {
		if (pid > 0 && WIFSIGNALED(status))
			fprintf(stderr, "\na process died of signal %d\n", WTERMSIG(status));
		if (pid > 0 && status != 0)
			atomic_store(&board->stop, true);
		show_progress(name);
		usleep(pid > 0 ? 0 : 20000);
	}
}

static void sell_all(struct run *run)
{
	fill_shop();
	atomic_store(&board->next, 0);
	atomic_store(&board->done, 0);
	run->seconds = -seconds_now();
	start_sellers(run->locked);
	watch_sellers(run->name);
	run->seconds += seconds_now();
	printf("%s%s: %.1f s\n", isatty(STDOUT_FILENO) ? "\n" : "", run->name, run->seconds);
	if (atomic_load(&board->stop) || atomic_load(&board->done) < order_count)
		die("stopped after %lu of %lu orders", atomic_load(&board->done), order_count);
	read_books(run);
}

static void print_table(const struct run *without, const struct run *with)
{
	MYSQL_ROW a, b;

	printf("\n%55s | %19s\n", "without the lock", "with the lock");
	printf("%-7s %-19s %5s | %5s %6s %6s | %5s %6s %6s\n", "sku", "product", "stock", "sold",
	       "left", "off by", "sold", "left", "off by");
	while ((a = mysql_fetch_row(without->books)) != NULL &&
	       (b = mysql_fetch_row(with->books)) != NULL)
		printf("%-7s %-19s %5s | %5s %6s %6s | %5s %6s %6s\n", a[0], a[1], a[2], a[3], a[4],
		       a[5], b[3], b[4], b[5]);
	putchar('\n');
}

/* Returns the number of products whose books do not balance. */
static long print_summary(const struct run *run)
{
	long wrong = 0, oversold = 0;
	double worth = 0;
	MYSQL_ROW row;

	mysql_data_seek(run->books, 0);
	while ((row = mysql_fetch_row(run->books)) != NULL) {
		wrong += strtol(row[5], NULL, 10) != 0 || strtol(row[4], NULL, 10) < 0;
		oversold += strtol(row[6], NULL, 10);
		worth += strtod(row[6], NULL) * strtod(row[7], NULL);
	}
	printf("%-16s %2ld products wrong, %4ld units sold that were not there (%.2f EUR),"
	       " %.0f orders/s\n",
	       run->name, wrong, oversold, worth, (double)order_count / run->seconds);
	mysql_free_result(run->books);
	return wrong;
}

static void read_orders(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[80];
	unsigned long i = 0;

	if (file == NULL || fgets(line, sizeof(line), file) == NULL) /* the headings */
		die("%s: %s", path, file == NULL ? strerror(errno) : "no orders");
	for (; i < order_count && fgets(line, sizeof(line), file) != NULL; i++)
		if (sscanf(line, "%9u,%15[A-Z0-9-],%4d", &orders[i].id, orders[i].sku,
		           &orders[i].quantity) != 3 ||
		    orders[i].quantity < 1)
			die("%s: bad order in line %lu", path, i + 2);
	fclose(file);
	order_count = i;
	if (i == 0)
		die("%s: no orders", path);
}

static const char usage[] =
        "Usage: inventory [-n PROCESSES] [-o ORDERS] [--csv PATH] [--help]\n"
        "PROCESSES (1 to 256, default 8) sell one stock, without a lock and with one, to the\n"
        "first ORDERS (default: all) of the file PATH (default: orders.csv of the examples).\n\n"
        "The server is given by BIZLOCK_HOST, _PORT, _SOCKET, _USER, _PASSWORD and _DATABASE\n"
        "(default: bizlock_demo), for the shop and the lock alike. The tables shop_product and\n"
        "shop_sale of that database are created, and emptied.\n"
        "Exit status: 0 if the books balance with the lock, 1 if not or after an error.\n";

static const char *parse_options(int argc, char **argv)
{
	static const struct option options[] = {
	        {"csv", required_argument, NULL, 'c'}, {"help", no_argument, NULL, 'h'}, {0}};
	const char *csv = EXAMPLES_DIR "/orders.csv";
	int c;

	while ((c = getopt_long(argc, argv, "n:o:", options, NULL)) != -1) {
		if (c == 'n')
			processes = number("-n", optarg, 256);
		else if (c == 'o')
			order_count = number("-o", optarg, ORDERS_MAX);
		else if (c == 'c')
			csv = optarg;
		else
			exit(fputs(usage, c == 'h' ? stdout : stderr) < 0 || c != 'h');
	}
	if (optind < argc)
		die("unexpected argument %s; see --help", argv[optind]);
	return csv;
}

static void on_signal(int signum)
{
	(void)signum;
	atomic_store(&board->stop, true);
	bizlock_stop(atomic_load(&own_lock), 1); /* who waits need not wait until the end */
}

int main(int argc, char **argv)
{
	struct run without = {.name = "without the lock"}, with = {"with the lock", .locked = true};

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	             0);
	if (board == MAP_FAILED) {
		perror("inventory: mmap");
		return 1;
	}
	setenv("BIZLOCK_DATABASE", "bizlock_demo", 0);
	read_orders(parse_options(argc, argv));
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	printf("processes: %lu, orders: %lu\n", processes, order_count);
	sell_all(&without);
	sell_all(&with);
	print_table(&without, &with);
	if (print_summary(&without) == 0)
		puts("No sale was lost without the lock this time: try more processes.");
	if (print_summary(&with) != 0)
		die("the books do not balance with the lock");
	puts("\nWith the lock, sold + left = stock for every product, and none is below zero.");
	return 0;
}
