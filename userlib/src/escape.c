// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/*
 * The length of the UTF-8 character at @bytes, and its number; or 0 if the
 * bytes are no UTF-8.
 */
static size_t character_length(const unsigned char *bytes, size_t room,
			       uint32_t *code)
{
	size_t length;
	size_t i;

	*code = bytes[0];
	if (bytes[0] < 0x80)
		return 1;
	if (bytes[0] < 0xc2 || bytes[0] > 0xf4)
		return 0;
	length = bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
	if (length > room)
		return 0;
	*code = bytes[0] & (0x7f >> length);
	for (i = 1; i < length; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (bytes[i] & 0x3f);
	}
	/*
	 * Invalid: an overlong encoding, a UTF-16 surrogate, or a code point
	 * above U+10FFFF.
	 */
	if ((length == 3 && *code < 0x800) ||
	    (length == 4 && *code < 0x10000) ||
	    (*code >= 0xd800 && *code < 0xe000) || *code > 0x10ffff)
		return 0;
	return length;
}

/* Whether a character changes how the text around it looks. */
static bool is_control(uint32_t code)
{
	/* Control characters: ESC, line feed, DEL, CSI. */
	if (code < 0x20 || (code >= 0x7f && code < 0xa0))
		return true;
	/* Marks, embeddings, overrides and isolates of the direction. */
	if (code == 0x61c || code == 0x200e || code == 0x200f ||
	    (code >= 0x202a && code <= 0x202e) ||
	    (code >= 0x2066 && code <= 0x2069))
		return true;
	/* The separators of lines and of paragraphs. */
	if (code == 0x2028 || code == 0x2029)
		return true;
	/* No characters. XML has no place for them. */
	return code == 0xfffe || code == 0xffff;
}

size_t fmlib_escape(const char *text, size_t length,
		    char escaped[FMLIB_ESCAPED_MAX])
{
	const unsigned char *bytes = (const unsigned char *)text;
	uint32_t code;
	size_t size = character_length(bytes, length, &code);
	bool valid = size;
	size_t i;

	if (*text == '\\') {
		memcpy(escaped, "\\\\", 3);
		return 1;
	}
	if (valid && !is_control(code)) {
		memcpy(escaped, text, size);
		escaped[size] = '\0';
		return size;
	}
	if (!valid)
		size = 1;
	for (i = 0; i < size; i++)
		snprintf(escaped + 4 * i, 5, "\\x%02x", bytes[i]);
	return size;
}
