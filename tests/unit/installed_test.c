// The runs of a machine's services, from folders and settings as systemd and an administrator leave
// them.

#include "actors/shoal/run/installed.c" // The front command's own parts are in no library
#include "tests/test.h"
#include "tests/unit/folder_fixture.h"

#include "common/base/folder.h"

static void unit(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "var/lib/shoal/%s", name);
    assert_int_equal(folder_make(path_of(path), 0700, NULL), 0);
}

static void settings(const char *name, const char *text)
{
    char path[64];
    assert_int_equal(folder_make(path_of("etc/shoal"), 0700, NULL), 0);
    snprintf(path, sizeof path, "etc/shoal/%s.env", name);
    put(path, text, strlen(text));
}

// Expects "RUN TICKET, RUN TICKET".
static void expect(const char *expected)
{
    struct installed_run runs[INSTALLED_RUNS_MAX];
    char text[1000] = "";
    size_t used = 0;
    const uint32_t count = installed_runs(folder, runs);
    for (uint32_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s", i ? ", " : "",
                                 runs[i].run, runs[i].ticket);
    assert_string_equal(text, expected);
}

static void as_the_guide_says(void **state)
{
    (void)state;
    expect("");
    settings("shoal", "# a comment\nRUN_ID=demo\n#TICKET=shoal:...\n");
    expect("demo /run/shoal/ticket"); // Nothing was started yet
    unit("shoal-broker");
    unit("shoal-coordinator@demo");
    unit("shoal-data-provider@demo");
    unit("shoal-trainer@1");
    unit("shoal-trainer@2");
    expect("demo /run/shoal/ticket");
}

static void a_coordinator_needs_no_settings(void **state)
{
    (void)state;
    unit("shoal-broker");
    expect("");
    unit("shoal-coordinator@my-run");
    unit("shoal-trainer@1"); // Of no run: it does not start
    expect("my-run /run/shoal/ticket");
}

static void several_runs(void **state)
{
    (void)state;
    settings("shoal", "RUN_ID=demo\nTICKET=/etc/shoal/theirs\n");
    settings("shoal-trainer@2", " RUN_ID = \"other\" \r\nTICKET='/etc/shoal/others'\n");
    settings("shoal-coordinator@own", "RUN_ID=ignored\nTICKET=/run/shoal/ticket\n");
    unit("shoal-trainer@1");
    unit("shoal-trainer@2");
    expect("demo /etc/shoal/theirs, other /etc/shoal/others");
    unit("shoal-coordinator@own");
    expect("own /run/shoal/ticket, demo /etc/shoal/theirs, other /etc/shoal/others");
}

static void a_ticket_may_name_the_run(void **state)
{
    (void)state;
    struct ticket ticket = { .server = { { 1 } }, .address = "192.0.2.7:5550", .run = "theirs" };
    char text[TICKET_TEXT_MAX], line[TICKET_TEXT_MAX + 16], expected[TICKET_TEXT_MAX + 16];
    ticket_print(&ticket, text);
    snprintf(line, sizeof line, "TICKET=%s\n", text);
    snprintf(expected, sizeof expected, "theirs %s", text);
    settings("shoal", line);
    unit("shoal-trainer@1");
    expect(expected);
}

TESTS(FOLDER_TEST(as_the_guide_says), FOLDER_TEST(a_coordinator_needs_no_settings),
      FOLDER_TEST(several_runs), FOLDER_TEST(a_ticket_may_name_the_run))
