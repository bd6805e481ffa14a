#pragma once
// toml_shim -- the only C++ in the tree: TOML text to a flat list of nodes, or the place where the
// text is not TOML. toml++ parses; this file walks its tree, parents before children, and copies
// the nodes. Limits are checked before memory is taken: TOML_BYTES_MAX for a file, TOML_LINE_MAX
// for a line (a key of a thousand dots is a tree a thousand deep, and trees are freed by
// recursion), then nodes, depth and paths. No exception leaves it. Any thread.
//
//     members = 3          ->  {path ""             type TABLE    depth 0}
//     [config]                 {path "config"       type TABLE    depth 1}
//     seeds = [7, 8]           {path "config.seeds" type ARRAY    depth 2}
//                              {path "config.seeds[0]" INTEGER    depth 3} ...
//                              {path "members"      type INTEGER  depth 1}

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TOML_BYTES_MAX = 1 << 20,
    TOML_LINE_MAX = 1024,
    TOML_NODES_MAX = 4096,
    TOML_DEPTH_MAX = 16,
    TOML_PATH_MAX = 256,
    TOML_TEXT_MAX = 256
};
enum toml_type {
    TOML_TABLE,
    TOML_ARRAY,
    TOML_STRING,
    TOML_INTEGER,
    TOML_FLOAT,
    TOML_BOOLEAN,
    TOML_DATE
};

// Lines and columns count from 1, columns in characters; 0 where toml++ knows none. The end is
// one past the last character.
struct toml_place {
    uint32_t line, column, end_line, end_column;
};

struct toml_node {
    enum toml_type type;
    uint32_t depth;   // 0 for the file itself
    const char *path; // Dotted; a key that is not bare is in quotes, so no two nodes share a path
    const char *text; // TOML_STRING: UTF-8, terminated; may hold zeros inside
    size_t text_count;
    int64_t integer;       // TOML_INTEGER; 0 or 1 of a TOML_BOOLEAN
    double real;           // TOML_FLOAT
    struct toml_place key; // Where its name stands; line 0 for elements and for the file
    struct toml_place value;
};

// One more node of depth 0 follows the last one, so that a walk over a subtree finds its end.
struct toml_document {
    const struct toml_node *nodes;
    size_t count;
    void *owner;
};
struct toml_error {
    char text[TOML_TEXT_MAX];
    uint32_t line, column;
};

// 0, or FAULT_FORMAT (not TOML, not UTF-8), FAULT_LIMIT (one of the limits above), FAULT_MEMORY,
// each with *ret_error written. On success the caller owns the document and ends it with
// toml_document_destroy.
int toml_document_parse(const char *bytes, size_t count, struct toml_error *ret_error,
                        struct toml_document *ret_document);
void toml_document_destroy(struct toml_document *self);

#ifdef __cplusplus
}
#endif
