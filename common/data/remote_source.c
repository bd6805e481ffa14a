#include "common/data/remote_source.h"
#include "common/data/manifest.h"
#include "common/data/samples.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_numbered(const struct remote_source *source)
{
    return source->kind == REMOTE_NUMBERED_FILES;
}

// Where the last part of a URL's path begins, and where it ends: at the query, or at the end.
static void find_name(const char *url, const char **ret_begin, const char **ret_end)
{
    const char *host = strstr(url, "://") + 3, *end = host + strcspn(host, "?#");
    const char *slash = memrchr(host, '/', (size_t)(end - host));
    *ret_begin = slash ? slash + 1 : end;
    *ret_end = end;
}

// ---- check

static int check_template(const struct remote_source *source, const char *url, struct why *why)
{
    const char *mark = strstr(url, "{}"), *begin, *end;
    if (!mark || strstr(mark + 2, "{}"))
        return why_set(why, FAULT_CONFIG,
                       "url_template must have exactly one {}, where the number"
                       " goes");
    find_name(url, &begin, &end);
    if (!hash_is_none(&source->manifest_digest) && (mark < begin || mark >= end))
        return why_set(why, FAULT_CONFIG,
                       "url_template must have its {} in the file's name, behind"
                       " the last / of the path: the manifest names files by that part");
    return 0;
}

static int check_numbers(const struct remote_source *source, struct why *why)
{
    if (source->num_files < 1 || source->num_files > SAMPLES_FILES_MAX)
        return why_set(why, FAULT_RANGE, "num_files is %u; it must be 1 to %d", source->num_files,
                       SAMPLES_FILES_MAX);
    if (source->n_left_pad_zeros > REMOTE_PAD_MAX)
        return why_set(why, FAULT_RANGE, "n_left_pad_zeros is %u; it must be 0 to %d",
                       source->n_left_pad_zeros, REMOTE_PAD_MAX);
    if (source->start_index > UINT32_MAX - source->num_files)
        return why_set(why, FAULT_RANGE, "start_index is %u; it must be 0 to %u with num_files %u",
                       source->start_index, UINT32_MAX - source->num_files, source->num_files);
    return 0;
}

int remote_source_check(const struct remote_source *source, struct why *why)
{
    const char *const urls[HTTP_PLACES_MAX] = { source->url, source->mirror };
    if (source->kind == REMOTE_GCP)
        return why_set(why, FAULT_UNSUPPORTED,
                       "Gcp: listing a bucket is not supported; name its"
                       " files as NumberedFiles or SingleUrl"
                       " (https://storage.googleapis.com/BUCKET/NAME)");
    for (int i = 0; i < HTTP_PLACES_MAX && urls[i]; i++) {
        int rc = http_range_check_url(urls[i], why);
        if (rc == 0 && is_numbered(source)) rc = check_template(source, urls[i], why);
        if (rc < 0) return i ? why_wrap(why, rc, "the mirror") : rc;
    }
    return is_numbered(source) ? check_numbers(source, why) : 0;
}

// ---- URLs

uint32_t remote_source_count(const struct remote_source *source)
{
    return is_numbered(source) ? source->num_files : 1;
}

static void write_file(const struct remote_source *source, const char *url, uint32_t index,
                       char *text, size_t max)
{
    const char *mark = is_numbered(source) ? strstr(url, "{}") : NULL;
    if (mark)
        snprintf(text, max, "%.*s%0*" PRIu64 "%s", (int)(mark - url), url,
                 (int)source->n_left_pad_zeros, (uint64_t)source->start_index + index, mark + 2);
    else snprintf(text, max, "%s", url);
}

static void write_manifest(const char *url, char *text, size_t max)
{
    const char *begin, *end;
    find_name(url, &begin, &end);
    snprintf(text, max, "%.*s%s" MANIFEST_NAME "%s", (int)(begin - url), url,
             begin[-1] == '/' ? "" : "/", end);
}

void remote_source_file(const struct remote_source *source, uint32_t index,
                        struct remote_urls *ret_urls)
{
    const char *const urls[HTTP_PLACES_MAX] = { source->url, source->mirror };
    for (int i = 0; i < HTTP_PLACES_MAX; i++) {
        ret_urls->places.url[i] = urls[i] ? ret_urls->text[i] : NULL;
        if (urls[i])
            write_file(source, urls[i], index, ret_urls->text[i], sizeof ret_urls->text[i]);
    }
}

void remote_source_blocks(const struct remote_source *source, uint32_t index,
                          struct remote_urls *ret_urls)
{
    const char *begin, *end;
    remote_source_file(source, index, ret_urls);
    for (int i = 0; i < HTTP_PLACES_MAX && ret_urls->places.url[i]; i++) {
        char *text = ret_urls->text[i], query[sizeof ret_urls->text[i]];
        find_name(text, &begin, &end);
        strcpy(query, end);
        const size_t path = (size_t)(end - text);
        snprintf(text + path, sizeof ret_urls->text[i] - path, MANIFEST_BLOCKS "%s", query);
    }
}

void remote_source_manifest(const struct remote_source *source, struct remote_urls *ret_urls)
{
    const char *const urls[HTTP_PLACES_MAX] = { source->url, source->mirror };
    for (int i = 0; i < HTTP_PLACES_MAX; i++) {
        ret_urls->places.url[i] = urls[i] ? ret_urls->text[i] : NULL;
        if (urls[i]) write_manifest(urls[i], ret_urls->text[i], sizeof ret_urls->text[i]);
    }
}
