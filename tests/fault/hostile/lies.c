/* The lies. Each is told in the place of one packet, or of all of a kind.
 *
 * A lie is `noticeable` if the answer as a whole contradicts the protocol, the statement, or
 * itself: a packet that is cut off, too long, out of order or missing; an error, wherever it comes;
 * other numbers of columns or parameters than the statement has; more answers than statements; rows
 * without an end. After such a lie a call that says BIZLOCK_OK must have told the truth: it asked
 * again, or the lie was about something that does not matter, such as a number of warnings.
 *
 * All other lies are answers that an honest server could have given: "1 row affected", a row with
 * another owner, a row more or less. No client can know better, and what it says then may be
 * wrong. It must end in time all the same, and do no harm to the process. */
#include "tell.h"

#define ALL ((1u << KINDS) - 1)
#define K(kind) (1u << (kind))
#define ROWS_OF_BOTH (K(ROW) | K(BINARY_ROW))
#define ENDS (K(COLUMNS_END) | K(ROWS_END))
#define ANSWERS (K(OK) | K(ROWS_END))
#define NOT_LOGIN (ALL & ~(K(GREETING) | K(LOGIN)))

/* Connector/C takes an error 65535 for a report of progress, and to know whether the server makes
 * such reports it looks at the server's version, which it has not been told before the greeting:
 * it ends the process, and no caller can prevent that. */
#ifdef MARIADB_PACKAGE_VERSION
#define ALL_BUT_CRASH (ALL & ~K(GREETING))

/* And it reads descriptions of columns until it is told that there are no more, however many were
 * announced. */
#define ALL_BUT_COLUMNS (ALL & ~K(COLUMN))
#define NOTICEABLE_WHERE_CUT ALL
#else
#define ALL_BUT_CRASH ALL
#define ALL_BUT_COLUMNS ALL

/* libmysqlclient takes what is missing at the end of a row of texts for empty texts. */
#define NOTICEABLE_WHERE_CUT (ALL & ~K(ROW))
#endif

#define NOTICEABLE ALL
#define PLAUSIBLE 0

const struct lie lies[] = {
        {"left-out", ALL & ~ROWS_OF_BOTH, NOTICEABLE, leave_out, 0, true},
        {"row-left-out", ROWS_OF_BOTH, PLAUSIBLE, leave_out, 0, false},
        {"twice", ALL, PLAUSIBLE, repeat, 2, false},
        {"often", ALL, PLAUSIBLE, repeat, 300, false},
        {"empty", ALL, NOTICEABLE_WHERE_CUT, cut, 0, false},
        {"one-byte", ALL, NOTICEABLE_WHERE_CUT, cut_to, 1, false},
        {"two-bytes", ALL, NOTICEABLE_WHERE_CUT, cut_to, 2, false},
        {"an-eighth", ALL, NOTICEABLE_WHERE_CUT, cut, 1, false},
        {"half", ALL, NOTICEABLE_WHERE_CUT, cut, 4, false},
        {"most", ALL, NOTICEABLE_WHERE_CUT, cut, 7, false},
        {"one-byte-more", ALL, NOTICEABLE, add_tail, 1, false},
        {"bytes-more", ALL, NOTICEABLE, add_tail, 9, false},
        {"much-more", ALL, NOTICEABLE, add_tail, 65000, false},
        {"zeros", ALL, PLAUSIBLE, fill, 0, false},
        {"zeros-behind", ALL, PLAUSIBLE, fill_rest, 0, false},
        {"ones", ALL_BUT_CRASH, PLAUSIBLE, fill, 0xff, false},
        {"ones-behind", ALL, PLAUSIBLE, fill_rest, 0xff, false},
        {"fe-behind", ALL, PLAUSIBLE, fill_rest, 0xfe, false},
        {"fb-behind", ALL, PLAUSIBLE, fill_rest, 0xfb, false},
        {"a-byte", ALL, PLAUSIBLE, scatter, 1, false},
        {"another-byte", ALL, PLAUSIBLE, scatter, 1, false},
        {"some-bytes", ALL, PLAUSIBLE, scatter, 4, false},
        {"many-bytes", ALL, PLAUSIBLE, scatter, 40, false},
        {"next-number", ALL, NOTICEABLE, skew_number, 1, false},
        {"far-number", ALL, NOTICEABLE, skew_number, 100, false},
        {"long-header", ALL, NOTICEABLE, claim_length, 0xfffffe, true},
        {"endless-packet", ALL, NOTICEABLE, flood, ENDLESS_PACKET, false},
        {"endless", ALL_BUT_COLUMNS & ~ROWS_OF_BOTH, PLAUSIBLE, flood, 0, false},
        {"endless-rows", ROWS_OF_BOTH, NOTICEABLE, flood, 0, false},
        {"ok-0", ALL & ~K(OK), PLAUSIBLE, say_ok, 0, false},
        {"ok-1", ALL & ~K(OK), PLAUSIBLE, say_ok, 1, false},
        {"ok-before", NOT_LOGIN, PLAUSIBLE, say_ok_first, 1, false},
        {"end", ALL, PLAUSIBLE, say_end, 2, false},
        {"end-before", ALL, PLAUSIBLE, say_end_first, 2, false},
        {"end-and-more", NOT_LOGIN, PLAUSIBLE, say_end, 2 | MORE_RESULTS, false},
        {"file", ALL, NOTICEABLE, say_file, 0, false},
        {"end-alone", ALL, PLAUSIBLE, say_one_byte, 0xfe, false},
        {"error-alone", ALL, NOTICEABLE, say_one_byte, 0xff, false},
        {"error-0", ALL, NOTICEABLE, say_error, 0, false},
        {"error-syntax", ALL, NOTICEABLE, say_error, 1064, false},
        {"error-null", ALL, NOTICEABLE, say_error, 1048, false},
        {"error-lock-wait", ALL, NOTICEABLE, say_error, 1205, false},
        {"error-deadlock", ALL, NOTICEABLE, say_error, 1213, false},
        {"error-interrupted", ALL, NOTICEABLE, say_error, 1317, false},
        {"error-no-table", ALL, NOTICEABLE, say_error, 1146, false},
        {"error-duplicate", ALL, NOTICEABLE, say_error, 1062, false},
        {"error-unprepared", ALL, NOTICEABLE, say_error, 1461, false},
        {"error-range", ALL, NOTICEABLE, say_error, 1690, false},
        {"error-killed", ALL, NOTICEABLE, say_error, 1927, false},
        {"error-gone", ALL, NOTICEABLE, say_error, 2006, false},
        {"error-lost", ALL, NOTICEABLE, say_error, 2013, false},
        {"error-65535", ALL_BUT_CRASH, PLAUSIBLE, say_error, 65535, false},
        {"error-long", ALL, NOTICEABLE, say_long_error, 60000, false},
        {"error-before", ALL, NOTICEABLE, say_error_first, 1064, false},
        {"deadlock-before", ALL, NOTICEABLE, say_error_first, 1213, false},
        {"affected-0", K(OK), PLAUSIBLE, say_affected, 0, false},
        {"affected-1", K(OK), PLAUSIBLE, say_affected, 1, false},
        {"affected-2", K(OK), PLAUSIBLE, say_affected, 2, false},
        {"affected-3", K(OK), PLAUSIBLE, say_affected, 3, false},
        {"affected-many", K(OK), PLAUSIBLE, say_affected, 1ull << 32, false},
        {"affected-half", K(OK), PLAUSIBLE, say_affected, 1ull << 63, false},
        {"affected-all", K(OK), PLAUSIBLE, say_affected, UINT64_MAX, false},
        {"affected-null", K(OK), NOTICEABLE, put_at, AT(1, 1, 0xfb), false},
        {"id-0", K(OK), PLAUSIBLE, say_id, 0, false},
        {"id-rested", K(OK), PLAUSIBLE, say_id, 1ull << 62 | 5, false},
        {"id-half", K(OK), PLAUSIBLE, say_id, 1ull << 63, false},
        {"id-all", K(OK), PLAUSIBLE, say_id, UINT64_MAX, false},
        {"id-0-of-two", K(OK), PLAUSIBLE, say_id_of_two, 0, false},
        {"id-all-of-two", K(OK), PLAUSIBLE, say_id_of_two, UINT64_MAX, false},
        {"no-flags", ANSWERS | ENDS, PLAUSIBLE, set_flags, 0, false},
        {"all-flags", ANSWERS | ENDS, NOTICEABLE, add_flags, 0xffff, false},
        {"all-flags-but-more", ANSWERS | ENDS, NOTICEABLE, add_flags, 0xfff7, false},
        {"more", ANSWERS | K(COLUMNS_END), NOTICEABLE, add_flags, MORE_RESULTS, false},
        {"no-more", ANSWERS, NOTICEABLE, drop_flags, MORE_RESULTS, false},
        {"cursor", ANSWERS | ENDS, NOTICEABLE, add_flags, 0x40, false},
        {"last-row-sent", ANSWERS | ENDS, NOTICEABLE, add_flags, 0x80, false},
        {"out-params", ANSWERS | ENDS, NOTICEABLE, add_flags, 0x1000, false},
        {"session-track", ANSWERS | ENDS, NOTICEABLE, add_flags, 0x4000, false},
        {"another-answer", ANSWERS, NOTICEABLE, more_answers, 1, false},
        {"more-rows", ANSWERS, NOTICEABLE, more_rows, 0, false},
        {"endless-answers", ANSWERS, NOTICEABLE, endless_answers, 1, false},
        {"warnings", K(ROWS_END) | K(COLUMNS_END), NOTICEABLE, put_at, AT(1, 2, 0xffff), false},
        {"column-more", K(COUNT), NOTICEABLE, add_to_count, 1, false},
        {"columns-more", K(COUNT), NOTICEABLE, add_to_count, 30, false},
        {"column-less", K(COUNT), NOTICEABLE, add_to_count, 255, false},
        {"columns-0", K(COUNT), NOTICEABLE, say_count, 0, false},
        {"columns-1", K(COUNT), PLAUSIBLE, say_count, 1, false},
        {"columns-200", K(COUNT), NOTICEABLE, say_count, 200, false},
        {"columns-65535", K(COUNT), NOTICEABLE, say_count, 65535, false},
        {"columns-2^32", K(COUNT), NOTICEABLE, say_count, 1ull << 32, false},
        {"columns-all", K(COUNT), NOTICEABLE, say_count, UINT64_MAX, false},
        {"statement-0", K(PREPARED), NOTICEABLE, put_at, AT(1, 4, 0), false},
        {"statement-all", K(PREPARED), NOTICEABLE, put_at, AT(1, 4, 0xffffffffu), false},
        {"prepared-columns-0", K(PREPARED), NOTICEABLE, put_at, AT(5, 2, 0), false},
        {"prepared-columns-1", K(PREPARED), NOTICEABLE, put_at, AT(5, 2, 1), false},
        {"prepared-columns-9", K(PREPARED), NOTICEABLE, put_at, AT(5, 2, 9), false},
        {"prepared-columns-all", K(PREPARED), NOTICEABLE, put_at, AT(5, 2, 0xffff), false},
        {"parameters-0", K(PREPARED), NOTICEABLE, put_at, AT(7, 2, 0), false},
        {"parameters-1", K(PREPARED), NOTICEABLE, put_at, AT(7, 2, 1), false},
        {"parameters-9", K(PREPARED), NOTICEABLE, put_at, AT(7, 2, 9), false},
        {"parameters-all", K(PREPARED), NOTICEABLE, put_at, AT(7, 2, 0xffff), false},
        {"prepared-warnings", K(PREPARED), NOTICEABLE, put_at, AT(10, 2, 0xffff), false},
        {"catalog-long", K(COLUMN), NOTICEABLE, put_at, AT(0, 1, 250), false},
        {"catalog-huge", K(COLUMN), NOTICEABLE, put_at, AT(0, 3, 0xfffffc), false},
        {"catalog-all", K(COLUMN), NOTICEABLE, put_at, AT(0, 5, 0xfffffffffeu), false},
        {"catalog-null", K(COLUMN), NOTICEABLE, put_at, AT(0, 1, 0xfb), false},
        {"name-long", K(COLUMN), NOTICEABLE, put_at, AT(4, 1, 250), false},
        {"column-charset", K(COLUMN), NOTICEABLE, put_at_end, AT(12, 2, 0xffff), false},
        {"column-length", K(COLUMN), NOTICEABLE, put_at_end, AT(10, 4, 0xffffffffu), false},
        {"column-length-0", K(COLUMN), NOTICEABLE, put_at_end, AT(10, 4, 0), false},
        {"type-decimal", K(COLUMN), PLAUSIBLE, put_at_end, AT(6, 1, 0), false},
        {"type-tiny", K(COLUMN), PLAUSIBLE, put_at_end, AT(6, 1, 1), false},
        {"type-double", K(COLUMN), PLAUSIBLE, put_at_end, AT(6, 1, 5), false},
        {"type-null", K(COLUMN), PLAUSIBLE, put_at_end, AT(6, 1, 6), false},
        {"type-timestamp", K(COLUMN), PLAUSIBLE, put_at_end, AT(6, 1, 7), false},
        {"type-bigint", K(COLUMN), PLAUSIBLE, put_at_end, AT(6, 1, 8), false},
        {"type-time", K(COLUMN), PLAUSIBLE, put_at_end, AT(6, 1, 11), false},
        {"type-bit", K(COLUMN), PLAUSIBLE, put_at_end, AT(6, 1, 16), false},
        {"type-unknown", K(COLUMN), PLAUSIBLE, put_at_end, AT(6, 1, 100), false},
        {"type-json", K(COLUMN), PLAUSIBLE, put_at_end, AT(6, 1, 245), false},
        {"type-decimal-new", K(COLUMN), PLAUSIBLE, put_at_end, AT(6, 1, 246), false},
        {"type-blob", K(COLUMN), PLAUSIBLE, put_at_end, AT(6, 1, 252), false},
        {"type-geometry", K(COLUMN), PLAUSIBLE, put_at_end, AT(6, 1, 255), false},
        {"column-flags-0", K(COLUMN), PLAUSIBLE, put_at_end, AT(5, 2, 0), false},
        {"column-flags-all", K(COLUMN), PLAUSIBLE, put_at_end, AT(5, 2, 0xffff), false},
        {"decimals", K(COLUMN), NOTICEABLE, put_at_end, AT(3, 1, 0xff), false},
        {"first-null", K(ROW), PLAUSIBLE, put_at, AT(0, 1, 0xfb), false},
        {"all-null", K(ROW), PLAUSIBLE, all_null, 0, false},
        {"first-long", K(ROW), NOTICEABLE, put_at, AT(0, 1, 250), false},
        {"first-longer", K(ROW), NOTICEABLE, put_at, AT(0, 3, 0xfffffc), false},
        {"first-huge", K(ROW), NOTICEABLE, put_at, AT(0, 4, 0xfffffffdu), false},
        {"first-all", K(ROW), PLAUSIBLE, put_at, AT(0, 5, 0xfffffffffeu), false},
        {"field-more", K(ROW), NOTICEABLE, add_field, 0, false},
        {"texts-empty", K(ROW), PLAUSIBLE, all_fields, 0, false},
        {"texts-minus", K(ROW), PLAUSIBLE, all_fields, 1, false},
        {"texts-0", K(ROW), PLAUSIBLE, all_fields, 2, false},
        {"texts-1", K(ROW), PLAUSIBLE, all_fields, 3, false},
        {"texts-2", K(ROW), PLAUSIBLE, all_fields, 4, false},
        {"texts-2^64", K(ROW), PLAUSIBLE, all_fields, 5, false},
        {"texts-negative", K(ROW), PLAUSIBLE, all_fields, 6, false},
        {"texts-1e99", K(ROW), PLAUSIBLE, all_fields, 7, false},
        {"texts-hex", K(ROW), PLAUSIBLE, all_fields, 8, false},
        {"texts-no-utf8", K(ROW), PLAUSIBLE, all_fields, 9, false},
        {"texts-format", K(ROW), PLAUSIBLE, all_fields, 10, false},
        {"texts-nan", K(ROW), PLAUSIBLE, all_fields, 11, false},
        {"texts-rested", K(ROW), PLAUSIBLE, all_fields, 12, false},
        {"texts-long", K(ROW), PLAUSIBLE, long_fields, 8000, false},
        {"texts-of-300", K(ROW), PLAUSIBLE, long_fields, 300, false},
        {"not-a-row", K(BINARY_ROW), NOTICEABLE, put_at, AT(0, 1, 1), false},
        {"nulls", K(BINARY_ROW), PLAUSIBLE, null_bits, 0xff, false},
        {"no-nulls", K(BINARY_ROW), PLAUSIBLE, null_bits, 0, false},
        {"some-nulls", K(BINARY_ROW), PLAUSIBLE, null_bits, 0x55, false},
        {"other-nulls", K(BINARY_ROW), PLAUSIBLE, null_bits, 0xaa, false},
        {"text-long", K(BINARY_ROW), PLAUSIBLE, put_at, AT(3, 1, 250), false},
        {"text-longer", K(BINARY_ROW), PLAUSIBLE, put_at, AT(3, 3, 0xfffffc), false},
        {"text-huge", K(BINARY_ROW), PLAUSIBLE, put_at, AT(3, 4, 0xfffffffdu), false},
        {"text-all", K(BINARY_ROW), PLAUSIBLE, put_at, AT(3, 5, 0xfffffffffeu), false},
        {"text-null", K(BINARY_ROW), PLAUSIBLE, put_at, AT(3, 1, 0xfb), false},
};
const unsigned lie_count = sizeof(lies) / sizeof(lies[0]);
