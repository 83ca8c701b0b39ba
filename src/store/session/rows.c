#include "store/session/rows.h"

#include <stdlib.h>
#include <string.h>

#include "store/session/errclass.h"

/* Far more than the answer to any statement of bizlock's: 10,000 of the longest keys are 8 MiB,
 * and the process list of a busy server is less. */
#define BYTES_MAX (64u << 20)

#define NUMBER_MAX (1LL << 60)

struct bl_stored_row {
	struct bl_stored_row *next;
	unsigned long *lengths;
	char *fields[]; /* then the lengths, then the texts */
};

static size_t head_size(const struct bl_rows *rows)
{
	return sizeof(struct bl_stored_row) +
	       rows->columns * (sizeof(char *) + sizeof(unsigned long));
}

static size_t row_size(const struct bl_rows *rows, const unsigned long *lengths)
{
	size_t size = head_size(rows);

	for (unsigned i = 0; i < rows->columns; i++)
		size += lengths[i] + 1;
	return size;
}

static void append_row(struct bl_rows *rows, struct bl_stored_row *row)
{
	if (rows->last)
		rows->last->next = row;
	else
		rows->first = rows->next = row;
	rows->last = row;
	rows->count++;
}

static bool store_row(struct bl_rows *rows, MYSQL_ROW from, const unsigned long *lengths,
                      size_t size)
{
	struct bl_stored_row *row = malloc(size);
	char *text = (char *)row + head_size(rows);

	if (!row)
		return false;
	row->next = NULL;
	row->lengths = (unsigned long *)(row->fields + rows->columns);
	for (unsigned i = 0; i < rows->columns; i++) {
		row->lengths[i] = from[i] ? lengths[i] : 0;
		row->fields[i] = from[i] ? text : NULL;
		if (!from[i])
			continue;
		memcpy(text, from[i], lengths[i]);
		text[lengths[i]] = '\0';
		text += lengths[i] + 1;
	}
	append_row(rows, row);
	return true;
}

static int last_error(MYSQL *mysql, struct bl_err *err)
{
	return bl_err_native(err, mysql_errno(mysql), mysql_error(mysql));
}

/* Freeing a result reads the rest of it, which may have no end. */
static int stop_reading(MYSQL *mysql, int code, const char *why, struct bl_err *err)
{
	bl_connector_cut(mysql);
	return bl_err_set(err, code, "%s", why);
}

static int read_all(MYSQL *mysql, MYSQL_RES *result, bl_time until, struct bl_rows *rows,
                    struct bl_err *err)
{
	size_t bytes = 0;
	MYSQL_ROW row;

	while ((row = mysql_fetch_row(result)) != NULL) {
		const unsigned long *lengths = mysql_fetch_lengths(result);
		size_t size = row_size(rows, lengths);

		bytes += size;
		if (bytes > BYTES_MAX || bl_passed(until))
			return stop_reading(mysql, BIZLOCK_DB, "the server's answer does not end",
			                    err);
		if (!store_row(rows, row, lengths, size))
			return stop_reading(mysql, BIZLOCK_NOMEM, "out of memory", err);
	}
	return bl_connector_failed(mysql) ? last_error(mysql, err) : BIZLOCK_OK;
}

int bl_rows_read(MYSQL *mysql, bl_time until, struct bl_rows **ret, struct bl_err *err)
{
	MYSQL_RES *result = mysql_use_result(mysql);
	struct bl_rows *rows;
	int rc;

	if (!result && bl_connector_failed(mysql))
		return last_error(mysql, err);
	*ret = NULL;
	if (!result)
		return BIZLOCK_OK;
	rows = calloc(1, sizeof(*rows));
	if (rows) {
		rows->columns = mysql_num_fields(result);
		rc = read_all(mysql, result, until, rows, err);
	} else {
		rc = stop_reading(mysql, BIZLOCK_NOMEM, "out of memory", err);
	}
	mysql_free_result(result);
	if (rc == BIZLOCK_OK)
		*ret = rows;
	else
		bl_rows_free(rows);
	return rc;
}

MYSQL_ROW bl_rows_next(struct bl_rows *rows)
{
	struct bl_stored_row *row = rows->next;

	if (!row)
		return NULL;
	rows->next = row->next;
	rows->lengths = row->lengths;
	return row->fields;
}

void bl_rows_rewind(struct bl_rows *rows)
{
	rows->next = rows->first;
}

int64_t bl_rows_number(const char *field)
{
	int64_t number = field ? strtoll(field, NULL, 10) : 0;

	if (number < -NUMBER_MAX)
		return -NUMBER_MAX;
	return number < NUMBER_MAX ? number : NUMBER_MAX;
}

uint64_t bl_rows_u64(const char *field)
{
	return field ? strtoull(field, NULL, 10) : 0;
}

uint32_t bl_rows_u32(const char *field)
{
	uint64_t number = bl_rows_u64(field);

	return number > UINT32_MAX ? 0 : (uint32_t)number;
}

void bl_rows_free(struct bl_rows *rows)
{
	struct bl_stored_row *row = rows ? rows->first : NULL;

	while (row) {
		struct bl_stored_row *next = row->next;

		free(row);
		row = next;
	}
	free(rows);
}
