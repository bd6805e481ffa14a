// The asking half of choices.h: for each question the context with its shots, a score for each
// choice, and the counts of right answers.

#include "actors/shoal/model/choices.h"
#include "common/kernel/elementary.h"
#include "common/text/unicode.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64 }; // Tokens whose logits are held at a time

// ---- text ---------------------------------------------------------------------------------------

// What stands before and behind a question, and before a choice.
static const struct template { const char *before, *behind, *delimiter; }
templates[] = {
    [CHOICES_QUESTION] = { "Question: ", "\nAnswer:", " " },
    [CHOICES_RAW] = { "", "", "" },
};

static char *context_of(const struct choices_options *options,
                        const struct choices_question *question)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    const struct template *template = &templates[options->template];
    for (size_t i = 0; i < options->shots_count; i++) {
        const struct choices_question *shot = &options->shots[i];
        fprintf(out, "%s%s%s%s%s\n\n", template->before, shot->question, template->behind,
                template->delimiter, shot->choices[shot->answer]);
    }
    fprintf(out, "%s%s%s", template->before, question->question, template->behind);
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}

// The bytes of a context without the white space at its end, which Python's rstrip takes away: the
// property White_Space and four control characters.
static size_t context_end(const char *context)
{
    size_t end = 0;
    for (size_t at = 0, bytes = strlen(context), length; at < bytes; at += length) {
        const uint32_t c = unicode_next((const uint8_t *)context + at, bytes - at, &length);
        if (unicode_class_of(c) != UNICODE_SPACE && (c < 0x1c || c > 0x1f)) end = at + length;
    }
    return end;
}

// Code points, as Python counts: every byte that does not continue one, as the text is valid UTF-8 (jansson refuses
// other text). One space in front is left out: it stands between the question and the choice.
static size_t characters(const char *text)
{
    size_t count = 0;
    if (text[0] == ' ') text++;
    for (; *text; text++) count += ((unsigned char)*text & 0xc0) != 0x80;
    return count ? count : 1; // A choice of one space is not divided by 0
}

// ---- one choice ---------------------------------------------------------------------------------

static double log_probability(const float *logits, uint32_t vocab, uint32_t token)
{
    float high = logits[0];
    double sum = 0;
    for (uint32_t i = 1; i < vocab; i++) high = logits[i] > high ? logits[i] : high;
    for (uint32_t i = 0; i < vocab; i++) sum += elementary_exp((double)logits[i] - (double)high);
    return (double)logits[token] - (double)high - elementary_log(sum);
}

// The sum of the log-probabilities of the last `wanted` of `count` tokens, each predicted from the tokens before it.
// Tokens that the decoder holds are not read again.
//
//     tokens     cut off │ the context's end │ the `wanted` ones, of which the last is predicted, not read
//     index      0       │ from              │ count - wanted
//
// `read` tokens are read, from `from` on. `at` and `end` are indices that begin there.
static int score_tokens(decoder_t *decoder, const uint32_t *tokens, size_t count, size_t wanted,
                        struct why *why, double *ret_sum)
{
    const size_t seq_max = decoder_seq_max(decoder), vocab = decoder_shape(decoder)->vocab;
    if (wanted < 1 || wanted > seq_max || wanted >= count)
        return why_set(why, FAULT_RANGE,
                       "%zu tokens, allowed 1..%zu, the model's longest sequence, after a context "
                       "of at least one",
                       wanted, seq_max);
    const size_t read = count - 1 < seq_max ? count - 1 : seq_max;
    const uint32_t *from = tokens + (count - 1 - read);
    const size_t block = wanted < BLOCK ? wanted : BLOCK;
    float *logits = malloc(block * vocab * sizeof *logits);
    if (!logits) return why_set(why, FAULT_MEMORY, "the logits of %zu tokens", block);
    size_t at = decoder_keep(decoder, from, (uint32_t)(read - wanted));
    double sum = 0;
    int rc = 0;
    for (size_t done = 0, some; done < wanted && rc == 0; done += some) {
        some = wanted - done < block ? wanted - done : block;
        const size_t end = read - wanted + done + some;
        rc = decoder_read(decoder, from + at, (uint32_t)(end - at), (uint32_t)some, why, logits);
        at = end;
        for (size_t i = 0; i < some && rc == 0; i++)
            sum += log_probability(logits + i * vocab, (uint32_t)vocab,
                                   tokens[count - wanted + done + i]);
    }
    free(logits);
    if (rc == 0) *ret_sum = sum;
    return rc;
}

// The continuation's tokens are the last n of the whole text, where n is how many more tokens it has than the context
// without the white space at its end, as in the harness.
static int score_choice(decoder_t *decoder, const text_codec_t *codec, const char *context,
                        const char *delimiter, const char *choice, struct why *why, double *ret_sum)
{
    const size_t bytes = strlen(context) + strlen(delimiter) + strlen(choice);
    uint32_t *before = NULL, *whole = NULL;
    size_t before_count = 0, whole_count = 0;
    char *text = malloc(bytes + 1);
    if (!text) return why_set(why, FAULT_MEMORY, "a text of %zu bytes", bytes);
    snprintf(text, bytes + 1, "%s%s%s", context, delimiter, choice);
    int rc = text_codec_encode(codec, context, context_end(context), why, &before, &before_count);
    if (rc == 0) rc = text_codec_encode(codec, text, bytes, why, &whole, &whole_count);
    if (rc == 0)
        rc =
            score_tokens(decoder, whole, whole_count,
                         whole_count > before_count ? whole_count - before_count : 0, why, ret_sum);
    free(text);
    free(before);
    free(whole);
    return rc;
}

// ---- all ----------------------------------------------------------------------------------------

static int write_scores(const struct choices_options *options,
                        const struct choices_question *question, const double *sums, uint32_t best,
                        uint32_t best_normalized, struct why *why)
{
    FILE *out = options->scores;
    if (!out) return 0;
    fprintf(out, "{\"line\":%" PRIu64 ",\"log_probabilities\":[", question->line);
    for (uint32_t i = 0; i < question->count; i++) fprintf(out, "%s%.9g", i ? "," : "", sums[i]);
    fprintf(out, "],\"choice\":%u,\"choice_norm\":%u,\"answer\":%u}\n", best, best_normalized,
            question->answer);
    if (fflush(out) == 0) return 0;
    return why_set(why, FAULT_IO, "--scores %s: %s", options->scores_path, strerror(errno));
}

// Scores every choice, and counts whether the best ones are right. On a tie the first one is the best.
static int ask(decoder_t *decoder, const text_codec_t *codec,
               const struct choices_question *question, const struct choices_options *options,
               struct why *why, struct choices_result *result)
{
    uint32_t best = 0, best_normalized = 0;
    double high = -INFINITY, high_normalized = -INFINITY, sums[CHOICES_MAX] = { 0 };
    char *context = context_of(options, question);
    if (!context) return why_set(why, FAULT_MEMORY, "a context");
    int rc = 0;
    for (uint32_t i = 0; i < question->count && rc == 0; i++) {
        rc = score_choice(decoder, codec, context, templates[options->template].delimiter,
                          question->choices[i], why, &sums[i]);
        if (rc < 0)
            why_wrap(why, rc, "%.150s:%" PRIu64 ": choice %u", options->path, question->line, i);
        const double normalized = sums[i] / (double)characters(question->choices[i]);
        if (sums[i] > high) high = sums[i], best = i;
        if (normalized > high_normalized) high_normalized = normalized, best_normalized = i;
    }
    free(context);
    if (rc < 0) return rc;
    result->questions++;
    result->right += best == question->answer;
    result->right_normalized += best_normalized == question->answer;
    return write_scores(options, question, sums, best, best_normalized, why);
}

int choices_score(decoder_t *decoder, const text_codec_t *codec,
                  const struct choices_question *questions, size_t count,
                  const struct choices_options *options, struct why *why,
                  struct choices_result *ret_result)
{
    struct choices_result result = { 0 };
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = ask(decoder, codec, &questions[i], options, why, &result);
        if (rc == 0 && options->goes_on && !options->goes_on(options->arg, i + 1, count))
            rc = why_set(why, FAULT_TIMEOUT, "stopped after %zu of %zu questions", i + 1, count);
    }
    if (rc == 0) *ret_result = result;
    return rc;
}

double choices_standard_error(uint64_t right, uint64_t questions)
{
    const double fraction = (double)right / (double)questions;
    return questions > 1 ? sqrt(fraction * (1 - fraction) / (double)(questions - 1)) : 0;
}
