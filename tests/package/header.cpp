// The same for C++.
#include "header.c"
