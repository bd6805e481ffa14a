// choices_test -- multiple-choice questions: what is read, what is asked, and scores that were
// computed by hand.

#include <inttypes.h>
#include <stdlib.h>

static size_t largest; // Bytes that choices.c asked for at once

static void *counted_malloc(size_t bytes)
{
    if (bytes > largest) largest = bytes;
    return malloc(bytes);
}

#define malloc counted_malloc
#include "actors/shoal/model/choices.c" // The front command's own parts are in no library
#include "tests/test.h"
#undef malloc
#include "actors/shoal/model/choices_read.c"
#include "actors/shoal/text/text_codec.c"
#include "tests/unit/folder_fixture.h"

static struct choices read_text(const char *text)
{
    struct choices choices;
    struct why why = { 0 };
    put("q.jsonl", text, strlen(text));
    if (choices_read(path_of("q.jsonl"), &why, &choices) < 0) fail_msg("%s", why.text);
    return choices;
}

static void lines_become_questions(void **state)
{
    (void)state;
    struct choices choices =
        read_text("{\"question\": \"Ice?\", \"choices\": [\"fire\", \"water\"], \"answer\": 1}\n"
                  " \t\r\n"
                  "{\"id\": [{}], \"answer\": \"C\", \"choices\": [\"\\u00e9\", \"4\", \"5\"], "
                  "\"question\": \"2 + 2\"}");
    assert_int_equal(choices.count, 2);
    assert_string_equal(choices.questions[0].question, "Ice?");
    assert_string_equal(choices.questions[0].choices[1], "water");
    assert_int_equal(choices.questions[0].answer, 1);
    assert_int_equal(choices.questions[1].line, 3);
    assert_int_equal(choices.questions[1].answer, 2);
    assert_int_equal(characters(choices.questions[1].choices[0]), 1);

    const struct choices_options options = { .shots = choices.questions, .shots_count = 2 };
    char *context = context_of(&options, &choices.questions[0]);
    assert_string_equal(context, "Question: Ice?\nAnswer: water\n\n"
                                 "Question: 2 + 2\nAnswer: 5\n\n"
                                 "Question: Ice?\nAnswer:");
    free(context);
    const struct choices_options raw = { .template = CHOICES_RAW,
                                         .shots = choices.questions,
                                         .shots_count = 1 };
    context = context_of(&raw, &choices.questions[1]);
    assert_string_equal(context, "Ice?water\n\n2 + 2");
    free(context);
    choices_free(&choices);
}

#define GOOD "{\"question\": \"q\", \"choices\": [\"a\", \"b\"], \"answer\": 0}\n"
#define WITH(choices, answer)                                                                      \
    GOOD "{\"question\": \"q\", \"choices\": " choices ", \"answer\": " answer "}\n"

static void every_other_line_is_refused_by_its_number(void **state)
{
    static const struct {
        const char *text, *says;
        size_t count;
    } cases[] = {
        { "", "no question in it", 0 },
        { "\n \n", "no question in it", 0 },
        { GOOD "{\"question\": \"q\"\n", "q.jsonl:2: no valid JSON", 0 },
        { GOOD "\n[1, 2]\n", "q.jsonl:3", 0 },
        { GOOD "{\"choices\": [\"a\", \"b\"], \"answer\": 0}\n", ":2: 'question' is missing", 0 },
        { GOOD "{\"question\": 7, \"choices\": [\"a\", \"b\"], \"answer\": 0}\n", ":2", 0 },
        { GOOD "{\"question\": \"q\", \"question\": \"r\", \"choices\": [\"a\", \"b\"], "
               "\"answer\": 0}\n",
          ":2: no valid JSON", 0 },
        { GOOD "{\"question\": \"q\", \"answer\": 0}\n", ":2: 'choices' is missing", 0 },
        { WITH("\"a\"", "0"), ":2: 'choices'", 0 },
        { WITH("[\"a\"]", "0"), ":2: 1 choices, allowed 2..64", 0 },
        { WITH("[\"a\", 3]", "0"), ":2: choice 1 is no string", 0 },
        { WITH("[\"a\", \"\"]", "0"), ":2: choice 1 has 0 bytes", 0 },
        { WITH("[\"a\", \"b\"]", "2"), ":2: 'answer' must be a number of 0 to 1", 0 },
        { WITH("[\"a\", \"b\"]", "-1"), "letter of A to B", 0 },
        { WITH("[\"a\", \"b\"]", "0.0"), ":2: 'answer'", 0 },
        { WITH("[\"a\", \"b\"]", "\"C\""), ":2: 'answer'", 0 },
        { WITH("[\"a\", \"b\"]", "\"AB\""), ":2: 'answer'", 0 },
        { WITH("[\"a\", \"b\"]", "\"a\""), ":2: 'answer'", 0 },
        { WITH("[\"a\", \"b\"]", "null"), ":2: 'answer'", 0 },
        { WITH("[\"a\\u0000\", \"b\"]", "0"), ":2: no valid JSON", 0 },
        { WITH("[\"a\xff\", \"b\"]", "0"), ":2: no valid JSON", 0 },
        { GOOD "\0" GOOD, ":2", sizeof GOOD GOOD },
        { GOOD "[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]\n", ":2: JSON is nested", 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct choices choices = { 0 };
        struct why why = { 0 };
        put("q.jsonl", cases[i].text, cases[i].count ? cases[i].count : strlen(cases[i].text));
        if (choices_read(path_of("q.jsonl"), &why, &choices) >= 0) fail_msg("case %zu is read", i);
        if (!strstr(why.text, cases[i].says)) fail_msg("case %zu: %s", i, why.text);
        assert_null(choices.questions);
    }
    struct choices choices = { 0 };
    struct why why = { 0 };
    assert_int_equal(choices_read(path_of("none"), &why, &choices), FAULT_NOT_FOUND);
    assert_int_equal(choices_read(folder, &why, &choices), FAULT_FORMAT);
}

static void long_lines_and_texts_are_bounded(void **state)
{
    static char text[CHOICES_LINE_MAX + 64];
    struct choices choices = { 0 };
    struct why why = { 0 };
    (void)state;
    // As long as a line may be: too long for a text in it, so refused as that
    int begun = sprintf(text, "{\"question\": \"");
    memset(text + begun, 'x', sizeof text - (size_t)begun);
    text[CHOICES_LINE_MAX] = '\n';
    put("q.jsonl", text, CHOICES_LINE_MAX + 1);
    assert_int_equal(choices_read(path_of("q.jsonl"), &why, &choices), FAULT_FORMAT);
    text[CHOICES_LINE_MAX] = 'x';
    put("q.jsonl", text, CHOICES_LINE_MAX + 1);
    assert_int_equal(choices_read(path_of("q.jsonl"), &why, &choices), FAULT_LIMIT);
    assert_non_null(strstr(why.text, "q.jsonl:1: a line of more than 1048576 bytes"));
    sprintf(text + begun + CHOICES_TEXT_MAX + 1, "\", \"choices\": [\"a\", \"b\"], \"answer\": 0}");
    put("q.jsonl", text, strlen(text));
    assert_true(choices_read(path_of("q.jsonl"), &why, &choices) < 0);
    assert_non_null(strstr(why.text, "q.jsonl:1: 'question'"));
    memmove(text + begun, text + begun + 1, strlen(text + begun));
    put("q.jsonl", text, strlen(text));
    assert_int_equal(choices_read(path_of("q.jsonl"), &why, &choices), 0);
    choices_free(&choices);
}

// A good file with a few bytes changed is read or refused with a line's number, whatever they are.
static void damaged_files_are_read_or_refused(void **state)
{
    static const char good[] =
        GOOD "{\"question\": \"\\u00e9\", \"choices\": [\"x\", \"y\", "
             "\"z\"], \"answer\": \"C\", \"more\": {\"a\": [1, 2.5e3]}}\n" GOOD;
    static const char marks[] = "\"\\{}[],:0-9eEAZ \n\t\xc3\xa9\xff";
    uint64_t seed = 1;
    unsigned read = 0, refused = 0;
    (void)state;
    for (int i = 0; i < 2000; i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        for (int j = 0; j <= i % 3; j++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[(seed >> 33) % (sizeof good - 1)] = marks[(seed >> 20) % sizeof marks];
        }
        struct choices choices = { 0 };
        struct why why = { 0 };
        put("q.jsonl", text, sizeof good - 1);
        if (choices_read(path_of("q.jsonl"), &why, &choices) == 0) read++;
        else if (!strstr(why.text, "q.jsonl:")) fail_msg("no line in: %s", why.text);
        else refused++;
        for (size_t k = 0; k < choices.count; k++)
            assert_true(choices.questions[k].answer < choices.questions[k].count);
        choices_free(&choices);
    }
    if (read < 30 || refused < 500) fail_msg("%u read, %u refused", read, refused);
}

// ---- a model computed by hand -------------------------------------------------------------------

// Layers of zeros leave the stream as the embedding: e0 for every token, so that whatever comes
// before, "a" follows with probability 9/10 and each other byte with 1/2550.
static const struct model_shape shape = { .vocab = 256,
                                          .dim = 4,
                                          .layers = 1,
                                          .heads = 1,
                                          .kv_heads = 1,
                                          .head_dim = 2,
                                          .ffn = 2,
                                          .seq_len_max = 4096,
                                          .rope_theta = 10000,
                                          .rms_eps = 1e-12 };

static decoder_t *hand_made(uint32_t window, float **ret_params)
{
    float *params = calloc(model_parameter_count(&shape), sizeof *params);
    decoder_t *decoder = NULL;
    assert_non_null(params);
    for (uint32_t t = 0; t < 256; t++) params[t * 4] = 1;
    params[model_final_norm_offset(&shape)] = 0.5f; // The norm of e0 is 2 e0
    params[model_head_offset(&shape) + 'a' * 4] = (float)log(2295);
    assert_int_equal(decoder_new(&shape, params, window, NULL, NULL, &decoder), 0);
    *ret_params = params;
    return decoder;
}

static struct choices_result score_text(const char *text, uint32_t window)
{
    float *params;
    struct choices_result result;
    struct why why = { 0 };
    text_codec_t *codec = NULL;
    decoder_t *decoder = hand_made(window, &params);
    struct choices choices = read_text(text);
    assert_int_equal(text_codec_open("here", 256, &why, &codec), 0);
    const struct choices_options options = { .shots = choices.questions, .shots_count = 0 };
    if (choices_score(decoder, codec, choices.questions, choices.count, &options, &why, &result) <
        0)
        fail_msg("%s", why.text);
    text_codec_close(&codec);
    choices_free(&choices);
    decoder_destroy(&decoder);
    free(params);
    return result;
}

#define ASK(choices, answer)                                                                       \
    "{\"question\": \"which\", \"choices\": " choices ", \"answer\": " answer "}\n"

static void scores_are_those_computed_by_hand(void **state)
{
    (void)state;
    float *params;
    text_codec_t *codec = NULL;
    decoder_t *decoder = hand_made(64, &params);
    assert_int_equal(text_codec_open("here", 256, NULL, &codec), 0);
    double sum;
    assert_int_equal(score_choice(decoder, codec, "Answer:", " ", "ab", NULL, &sum), 0);
    assert_true(fabs(sum - (log(0.9) - 2 * log(2550))) < 1e-5); // " ", "a", "b"

    const struct {
        const char *text;
        uint64_t right, normalized;
    } cases[] = {
        // -15.7 against -23.7; per character -15.7 against -5.9
        { ASK("[\"b\", \"aabb\"]", "0"), 1, 0 },
        { ASK("[\"b\", \"aabb\"]", "\"B\""), 0, 1 },
        // -23.5 against -39.2; per character (not per byte) -11.8 against -19.6
        { ASK("[\"\\u00e9\\u00e9\", \"bb\"]", "1"), 1, 1 },
        // Equals: the first
        { ASK("[\"bc\", \"cb\"]", "0"), 1, 1 },
        { ASK("[\"bc\", \"cb\"]", "1"), 0, 0 },
        { ASK("[\"b\", \"a\"]", "1") ASK("[\"aaa\", \"b\"]", "1"), 1, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        // In a window that holds all, and in one that loses the beginning of each context
        for (uint32_t window = 6; window <= 64; window += 58) {
            const struct choices_result result = score_text(cases[i].text, window);
            if (result.right != cases[i].right || result.right_normalized != cases[i].normalized)
                fail_msg("case %zu: %" PRIu64 " right, %" PRIu64 " normalized", i, result.right,
                         result.right_normalized);
        }
    }
    // Of the context's end, what Python's rstrip takes away is scored with the continuation
    static const struct {
        const char *context, *delimiter, *choice;
        double sum;
    } splits[] = {
        { "Answer:", "", "ab", -0.105361 - 7.843849 },
        { "Answer: ", "", "a", -7.949210 },
        { "Answer:a\n \x1f", "", "a", -23.636907 },
        { "Answer\xe2\x80\x83", "", "a", -23.636907 },
        { "Answer\xe2\x80\x8b", "", "a", -0.105361 },
    };
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        assert_int_equal(score_choice(decoder, codec, splits[i].context, splits[i].delimiter,
                                      splits[i].choice, NULL, &sum),
                         0);
        if (!(fabs(sum - splits[i].sum) < 1e-5)) fail_msg("split %zu: %g", i, sum);
    }
    assert_int_equal(characters(" ab"), 2);
    assert_int_equal(characters("  ab"), 3);
    assert_true(fabs(choices_standard_error(3, 10) - sqrt(0.3 * 0.7 / 9)) < 1e-12);

    // And as a line of JSON: -15.7 per character against -5.9
    struct choices two = read_text("\n" ASK("[\"b\", \"aabb\"]", "0"));
    struct choices_result one;
    char *line = NULL;
    size_t bytes = 0;
    double first, second;
    int end = 0;
    FILE *scores = open_memstream(&line, &bytes);
    const struct choices_options written = { .scores = scores };
    assert_int_equal(choices_score(decoder, codec, two.questions, 1, &written, NULL, &one), 0);
    fclose(scores);
    assert_int_equal(sscanf(line,
                            "{\"line\":2,\"log_probabilities\":[%lf,%lf],\"choice\":0,"
                            "\"choice_norm\":1,\"answer\":0}\n%n",
                            &first, &second, &end),
                     2);
    assert_int_equal(end, bytes);
    assert_true(first > -15.75 && first < -15.65 && second > -23.75 && second < -23.55);
    free(line);
    choices_free(&two);

    struct choices choices = read_text(GOOD ASK("[\"a\", \"123456\"]", "0"));
    struct why why = { 0 };
    struct choices_result result;
    const struct choices_options options = { .path = "two/q.jsonl" };
    decoder_destroy(&decoder);
    free(params);
    decoder = hand_made(6, &params);
    assert_int_equal(choices_score(decoder, codec, choices.questions, 2, &options, &why, &result),
                     FAULT_RANGE);
    assert_non_null(strstr(why.text, "two/q.jsonl:2: choice 1: 7 tokens, allowed 1..6"));
    choices_free(&choices);
    text_codec_close(&codec);
    decoder_destroy(&decoder);
    free(params);
}

// In blocks, of which the last is not full; memory is a block's, however long the choice.
static void long_choices_are_scored_in_blocks(void **state)
{
    (void)state;
    static const size_t lengths[] = { BLOCK - 2, BLOCK - 1, BLOCK, 2 * BLOCK, 3000 };
    float *params;
    text_codec_t *codec = NULL;
    decoder_t *decoder = hand_made(4096, &params);
    assert_int_equal(text_codec_open("here", 256, NULL, &codec), 0);
    largest = 0;
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        char choice[3001];
        double sum, wanted = -log(2550); // Of the space
        for (size_t i = 0; i < lengths[k]; i++) {
            choice[i] = i % 5 ? 'a' : 'b';
            wanted += i % 5 ? log(0.9) : -log(2550);
        }
        choice[lengths[k]] = 0;
        for (int again = 0; again < 2; again++) { // The context is held the second time
            assert_int_equal(score_choice(decoder, codec, "Answer:", " ", choice, NULL, &sum), 0);
            if (!(fabs(sum - wanted) < 1e-6 * fabs(wanted)))
                fail_msg("%zu: %g, not %g", lengths[k], sum, wanted);
        }
    }
    assert_int_equal(largest, BLOCK * 256 * sizeof(float));
    text_codec_close(&codec);
    decoder_destroy(&decoder);
    free(params);
}

// Questions in turn, with what they share read once, score as each does alone.
static void what_is_shared_is_read_once(void **state)
{
    (void)state;
    static char text[65536];
    size_t count = 0;
    for (int i = 0; i < 20; i++)
        count += (size_t)sprintf(text + count,
                                 "{\"question\": \"%d is\", \"choices\": [\"%s\", "
                                 "\"%s\", \"xx\"], \"answer\": %d}\n",
                                 i, i % 3 ? "a" : "b", i % 2 ? "aabb" : "a", i % 3);
    struct choices choices = read_text(text);
    struct choices_result all, sum = { 0 }, one;
    float *params;
    text_codec_t *codec = NULL;
    assert_int_equal(text_codec_open("here", 256, NULL, &codec), 0);
    const struct choices_options options = { .shots = choices.questions, .shots_count = 3 };
    decoder_t *decoder = hand_made(600, &params);
    assert_int_equal(choices_score(decoder, codec, choices.questions + 3, 17, &options, NULL, &all),
                     0);
    for (int i = 0; i < 17; i++) {
        decoder_rewind(decoder, 0);
        assert_int_equal(
            choices_score(decoder, codec, choices.questions + 3 + i, 1, &options, NULL, &one), 0);
        sum.right += one.right, sum.right_normalized += one.right_normalized;
    }
    assert_true(all.questions == 17 && all.right > 0 && all.right < 17);
    assert_true(all.right == sum.right && all.right_normalized == sum.right_normalized);
    choices_free(&choices);
    text_codec_close(&codec);
    decoder_destroy(&decoder);
    free(params);
}

TESTS(TEST_WITH(lines_become_questions, folder_set_up, folder_tear_down),
      TEST_WITH(every_other_line_is_refused_by_its_number, folder_set_up, folder_tear_down),
      TEST_WITH(damaged_files_are_read_or_refused, folder_set_up, folder_tear_down),
      TEST_WITH(long_lines_and_texts_are_bounded, folder_set_up, folder_tear_down),
      TEST_WITH(scores_are_those_computed_by_hand, folder_set_up, folder_tear_down),
      TEST(long_choices_are_scored_in_blocks),
      TEST_WITH(what_is_shared_is_read_once, folder_set_up, folder_tear_down))
