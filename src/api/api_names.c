/* The names and texts of the errors, from the one list in bizlock.h. */
#include "bizlock.h"

const char *bizlock_strerror(int err)
{
	switch (err) {
#define TEXT(name, number, text)                                                                   \
	case BIZLOCK_##name:                                                                       \
		return text;
		BIZLOCK_ERRORS(TEXT)
#undef TEXT
	}
	return "no error number of bizlock";
}

const char *bizlock_err_name(int err)
{
	switch (err) {
#define NAME(name, number, text)                                                                   \
	case BIZLOCK_##name:                                                                       \
		return "BIZLOCK_" #name;
		BIZLOCK_ERRORS(NAME)
#undef NAME
	}
	return "BIZLOCK_?";
}
