#pragma once
// faults -- all faults of a file, found in one pass and printed as compilers do:
//
//     config/demo/state.toml:3:17: error: config.min_clients: expected integer, got string "two"
//        3 |   min_clients = "two"
//          |                 ^~~~~  range 1..16384
//     config/demo/state.toml: 1 error: nothing is loaded
//
// A value: owns no memory, any number may exist. Printing is safe for a terminal, whatever bytes
// the file has.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/config/toml_shim.h"

enum {
    CONFIG_FAULTS_MAX = 64,
    CONFIG_FAULT_TEXT = 400,
    CONFIG_FAULT_NOTE = 240,
    CONFIG_FAULT_SOURCE = 200,
    CONFIG_PATH_MAX = 512
};

struct config_fault {
    uint32_t line, column, width;     // line 0: the file as a whole
    bool warning;                     // Printed, but the file is loaded
    char text[CONFIG_FAULT_TEXT];     // "config.min_clients: expected ..."
    char note[CONFIG_FAULT_NOTE];     // The allowed values; may be empty
    char source[CONFIG_FAULT_SOURCE]; // The line itself; empty if it is too long to show
};

struct config_faults {
    char file[CONFIG_PATH_MAX];
    struct config_fault list[CONFIG_FAULTS_MAX];
    uint32_t count, errors, warnings; // errors + warnings - count were found but not stored
};

void config_faults_init(struct config_faults *self, const char *file);

// Adds one at `place` of the file whose text is `bytes` (borrowed; it may be NULL with line 0).
void config_faults_add(struct config_faults *self, bool warning, struct toml_place place,
                       const char *bytes, size_t count, const char *text, const char *note);

// Sorts them into the order of the file.
void config_faults_sort(struct config_faults *self);
void config_faults_print(const struct config_faults *self, FILE *out);
void config_faults_log(const struct config_faults *self); // To stderr, in the form of the log
