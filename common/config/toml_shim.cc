#include "common/config/toml_shim.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/config/toml_hardened.h"

namespace
{

const char *const BARE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

// Nodes point into `strings`, because a deque never moves its elements.
struct Walk {
    std::vector<toml_node> nodes;
    std::deque<std::string> strings;

    const std::string &keep(std::string text) { return strings.emplace_back(std::move(text)); }
    void value(const toml::node &node, toml_node &out);
    void visit(const toml::node &node, const std::string &path, uint32_t depth, toml_place key);
};

toml_place place_of(const toml::source_region &region)
{
    return { region.begin.line, region.begin.column, region.end.line, region.end.column };
}

std::string path_join(const std::string &path, std::string_view key)
{
    const bool bare = !key.empty() && key.find_first_not_of(BARE) == key.npos;
    const std::string name = bare ? std::string(key) : '"' + std::string(key) + '"';
    return path.empty() ? name : path + '.' + name;
}

void Walk::value(const toml::node &node, toml_node &out)
{
    out.type = node.is_table() ? TOML_TABLE : node.is_array() ? TOML_ARRAY : TOML_DATE;
    if (const auto *text = node.as_string()) {
        const std::string &kept = keep(text->get());
        out.type = TOML_STRING, out.text = kept.c_str(), out.text_count = kept.size();
    }
    if (const auto *whole = node.as_integer()) out.type = TOML_INTEGER, out.integer = whole->get();
    if (const auto *real = node.as_floating_point()) out.type = TOML_FLOAT, out.real = real->get();
    if (const auto *flag = node.as_boolean()) out.type = TOML_BOOLEAN, out.integer = flag->get();
}

void Walk::visit(const toml::node &node, const std::string &path, uint32_t depth, toml_place key)
{
    const toml::source_position at = node.source().begin;
    if (depth > TOML_DEPTH_MAX)
        fail(FAULT_LIMIT, "deeper than 16 tables and arrays", at.line, at.column);
    if (nodes.size() == TOML_NODES_MAX)
        fail(FAULT_LIMIT, "more than 4096 values", at.line, at.column);
    if (path.size() >= TOML_PATH_MAX)
        fail(FAULT_LIMIT, "a key whose full path exceeds 255 bytes", at.line, at.column);

    toml_node out = {};
    out.depth = depth, out.path = keep(path).c_str(), out.text = "";
    out.key = key, out.value = place_of(node.source());
    value(node, out);
    nodes.push_back(out);
    if (const auto *table = node.as_table())
        for (const auto &[name, child] : *table)
            visit(child, path_join(path, name.str()), depth + 1, place_of(name.source()));
    if (const auto *array = node.as_array())
        for (size_t i = 0; i < array->size(); i++)
            visit((*array)[i], path + '[' + std::to_string(i) + ']', depth + 1, {});
}

void bound_lines(std::string_view text)
{
    toml::source_index line = 1;
    for (size_t start = 0; start < text.size(); line++) {
        const size_t end = std::min(text.find('\n', start), text.size()), count = end - start;
        if (count > TOML_LINE_MAX) fail(FAULT_LIMIT, "a line of more than 1024 bytes", line, 1);
        start = end + 1;
    }
}

int refuse(const Refusal &why, toml_error *ret_error)
{
    std::snprintf(ret_error->text, TOML_TEXT_MAX, "%s", why.text);
    ret_error->line = why.line, ret_error->column = why.column;
    return why.fault;
}

} // namespace

int toml_document_parse(const char *bytes, size_t count, toml_error *ret_error,
                        toml_document *ret_document)
try {
    const std::string_view text(bytes, count);
    if (count > TOML_BYTES_MAX) fail(FAULT_LIMIT, "larger than 1048576 bytes");
    bound_lines(text);
    const toml::table table = toml::parse(text);
    auto walk = std::make_unique<Walk>();
    walk->visit(table, "", 0, {});
    walk->nodes.push_back({}); // The end of every subtree
    *ret_document = { walk->nodes.data(), walk->nodes.size() - 1, walk.get() };
    walk.release();
    return 0;
} catch (const toml::parse_error &error) {
    const toml::source_position at = error.source().begin;
    return refuse({ FAULT_FORMAT, error.what(), at.line, at.column }, ret_error);
} catch (const Refusal &why) {
    return refuse(why, ret_error);
} catch (...) {
    return refuse({ FAULT_MEMORY, "out of memory", 0, 0 }, ret_error);
}

void toml_document_destroy(toml_document *self)
{
    delete static_cast<Walk *>(self->owner);
    *self = {};
}
