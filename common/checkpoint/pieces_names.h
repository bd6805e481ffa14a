#pragma once
// pieces_names -- the names of files and folders of a save, made and recognised in one place.
// Private to pieces.
//
// An item's name has small letters, so none is that of a note; no name has a slash.

#include "common/checkpoint/pieces.h"

enum { PIECES_NAME = 128 }; // Room for any name made here

// All return `name`.
const char *pieces_folder_name(uint64_t step, char name[PIECES_NAME]); // step-00000120
const char *pieces_attempt_name(uint64_t step, uint32_t attempt,
                                char name[PIECES_NAME]); // .. .save-1
const char *pieces_cut_name(const struct hash *cut,
                            char name[PIECES_NAME]);                   // meta-0123456789abcdef.json
const char *pieces_note_name(uint32_t worker, char name[PIECES_NAME]); // NOTE.worker-3
// m.worker-3; replicate: m
const char *pieces_written_name(const char *item, enum tag tag, uint32_t worker,
                                char name[PIECES_NAME]);
// m.100-200; replicate: m; drop and custom: m.worker-3
const char *pieces_piece_name(const struct pieces_item *item, uint32_t worker,
                              char name[PIECES_NAME]);

bool pieces_is_attempt(const char *name, uint64_t *ret_step, uint32_t *ret_attempt);
bool pieces_is_cut(const char *name);

// Bytes of the piece of a worker.
uint64_t pieces_bytes_of(const struct pieces_item *item, uint32_t worker);

// ---- what writing and sealing share (pieces_write.c) ----

int pieces_check_save(const struct pieces_save *save, struct why *why);

// Puts a text into the open folder under this name, whole or not at all, in the place of an older
// one.
int pieces_put_text(int dir, uint32_t worker, const char *name, const char *text, struct why *why);
