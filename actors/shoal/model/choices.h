#pragma once
// choices -- multiple-choice questions from a file of lines, and how many a model gets right.
//
//     {"question": "What is ice?", "choices": ["fire", "frozen water"], "answer": 1}
//     {"question": "2 + 2 =", "choices": ["3", "4", "5"], "answer": "B"}
//
// A question is put into a context by a template, and each choice is a continuation of it:
//
//     question    context "Question: What is ice?\nAnswer:", continuation " frozen water": as
//                 lm-evaluation-harness asks ARC
//     raw         context and continuation are the question and the choice as they stand in the
//                 file, so that any task of the harness can be asked in the harness's words
//
// Shots, questions with their answers, go before the context, a blank line after each. White space
// at the end of a context is counted with the continuation, as the harness does. A continuation is
// scored by the sum of the log-probabilities of its tokens. The model's answer is
//
//     acc         the choice of the highest sum
//     acc_norm    the choice of the highest sum per character (Unicode code point) of the choice;
//                 one space that a choice begins with is not counted: of a raw choice it is what the
//                 harness puts between context and choice
//
// On a tie it is the first choice. A context that is longer than the model can read loses its beginning.
//
// The scores of a question can be had as a line of JSON: the number of its line in the file, the sum
// of each choice, the model's two answers and the right one. The first choice is 0.
//
//     {"line":1,"log_probabilities":[-9.75,-4.5],"choice":1,"choice_norm":1,"answer":1}

#include "actors/shoal/model/evaluate.h"
#include <stdio.h>

enum {
    CHOICES_LINE_MAX = 1 << 20, // Bytes of a line
    CHOICES_TEXT_MAX = 1 << 16, // Bytes of a question or a choice
    CHOICES_MAX = 64,           // Of one question; at least 2
    CHOICES_QUESTIONS_MAX = 1 << 20,
    CHOICES_SHOTS_MAX = 64,
};
#define CHOICES_FILE_MAX ((uint64_t)1 << 30)

struct choices_question {
    char *question, **choices; // Owned
    uint32_t count, answer;    // answer < count
    uint64_t line;             // Where it stands; the first is 1
};

struct choices {
    struct choices_question *questions;
    size_t count;
};

// Lines of white space are passed over, other members of an object too. Any other line is refused
// by its number: FAULT_FORMAT, FAULT_RANGE, FAULT_LIMIT; so is a file without a question, one
// of more than CHOICES_FILE_MAX bytes, and what is no regular file. FAULT_IO, FAULT_MEMORY, and the faults of fopen.
int choices_read(const char *path, struct why *why, struct choices *ret_choices);
void choices_free(struct choices *self);

enum choices_template { CHOICES_QUESTION, CHOICES_RAW, CHOICES_TEMPLATES };

struct choices_options {
    enum choices_template template;
    const char *path;                     // Of the questions, to say where a fault is; borrowed
    const struct choices_question *shots; // The same ones before every question; borrowed
    size_t shots_count;
    bool (*goes_on)(void *arg, size_t done, size_t of); // After each question; false: stop. Or NULL
    void *arg;
    // Or NULL; gets a line for each question. If it cannot be written, asking ends with FAULT_IO
    FILE *scores;
    const char *scores_path; // For faults
};
struct choices_result {
    uint64_t questions, right, right_normalized;
};

// Asks `count` questions. FAULT_RANGE, with path, line and choice (the first is 0), for a choice without tokens,
// without a token of context before it, or that alone is longer than the model can read; FAULT_NAN, likewise;
// FAULT_TIMEOUT if `goes_on` said so.
int choices_score(decoder_t *decoder, const text_codec_t *codec,
                  const struct choices_question *questions, size_t count,
                  const struct choices_options *options, struct why *why,
                  struct choices_result *ret_result);

// Standard error of the fraction of `questions` that is right, as the harness gives it; 0 for one question.
double choices_standard_error(uint64_t right, uint64_t questions);
