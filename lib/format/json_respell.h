/* Writes a JSON value again in another spelling: blanks as asked, strings with the fewest escapes,
 * numbers as they were. */
#ifndef K3_FORMAT_JSON_RESPELL_H
#define K3_FORMAT_JSON_RESPELL_H

#include "format/json_scan.h"
#include "format/text_buffer.h"

enum k3_json_style {
    K3_JSON_SORTED, /* no blanks, members by key (bytes) at every depth; of two alike the later one counts */
    K3_JSON_SPACED  /* a blank behind ',' and ':', members as they come */
};

/* Passes the next value of j and adds its new spelling to out.  False: j->error says why, or out->failed is set. */
bool k3_json_respell(struct k3_json *j, enum k3_json_style style, struct k3_text *out);

#endif
