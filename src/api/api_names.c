/* The names and texts of the errors, from the one list in bizlock.h. */
#include "bizlock.h"

/* A number that a later version answers. There are no kinds of OK. */
static int primary_of(int err)
{
	return err > 255 && BIZLOCK_PRIMARY(err) != BIZLOCK_OK ? BIZLOCK_PRIMARY(err) : err;
}

const char *bizlock_strerror(int err)
{
	switch (primary_of(err)) {
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
	switch (primary_of(err)) {
#define NAME(name, number, text)                                                                   \
	case BIZLOCK_##name:                                                                       \
		return "BIZLOCK_" #name;
		BIZLOCK_ERRORS(NAME)
#undef NAME
	}
	return "BIZLOCK_?";
}
