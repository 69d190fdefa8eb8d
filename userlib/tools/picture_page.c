// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Writes the picture as a page. The page needs no other file and may load
 * none. Names are in it only as text of HTML, and figures only as numbers, so a name
 * changes nothing else of the page.
 */
#include "picture.h"
#include "human.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
	"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
	"<style>\n"
	":root{color-scheme:light dark;--back:#fff;--text:#222;--line:#999;--failed:#d00}\n"
	"@media(prefers-color-scheme:dark){:root{--back:#181818;--text:#ddd;--line:#777;--failed:#f55}}\n"
	"body{margin:0 auto;padding:8px;max-width:1400px;background:var(--back);color:var(--text);font:15px/1.4 sans-serif;overflow-wrap:anywhere}\n"
	"h1{font-size:1.2em}canvas{width:100%;height:65vh;border:1px solid var(--line);touch-action:none}\n"
	"#about{min-height:4.5em}#failed{color:var(--failed)}.key{display:inline-block;margin-right:1em}\n"
	".key i{display:inline-block;width:.8em;height:.8em;margin-right:.3em}\n"
	"</style>\n";

/* The page calls a box that the pointer is on "hit". */
static const char script[] =
	"<script>\n'use strict';\n"
	"const get = id => document.getElementById(id), canvas = get('map'), pen = canvas.getContext('2d');\n"
	"const {boxes, ranges, groups, events, height, failures, source} = JSON.parse(get('data').textContent);\n"
	/* How high the mark of a failure is, at the top. */
	"const FAILED = 10;\n"
	"const all = {x: 0, y: 0, w: Math.max(events, 1), h: Math.max(height, 1)};\n"
	"let view = {...all}, hold = null;\n"
	"const nowhere = Math.min(...ranges.filter(r => r[0] === null).map(r => r[1]));\n"
	/* The shades tell an allocation from those beside it. */
	"const colour = (group, shade) => `hsl(${(group % 8) * 45 + 210} 60% ${[50, 44, 56][shade % 3]}%)`;\n"
	"const css = name => getComputedStyle(document.documentElement).getPropertyValue(name);\n"
	"const size = bytes => { let i = 0; while (bytes >= 1024 && i < 6) { bytes /= 1024; i++; }\n"
	"  return (i ? bytes.toFixed(1) : bytes) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'][i]; };\n"
	"function draw() {\n"
	"  const ratio = devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;\n"
	"  canvas.width = w * ratio; canvas.height = h * ratio; pen.scale(ratio, ratio);\n"
	"  const x = e => (e - view.x) / view.w * w, y = p => h - (p - view.y) / view.h * h;\n"
	"  pen.fillStyle = css('--line');\n"
	"  for (const [, place] of ranges) pen.fillRect(0, y(place) - .5, w, 1);\n"
	"  boxes.forEach(([begin, end, place, bytes, group], i) => {\n"
	"    if (end < view.x || begin > view.x + view.w || place > view.y + view.h || place + bytes < view.y) return;\n"
	"    pen.fillStyle = colour(group, i);\n"
	"    pen.globalAlpha = place < nowhere ? 1 : .5;\n"
	"    pen.fillRect(x(begin), y(place + bytes), Math.max(x(end) - x(begin), .5), Math.max(y(place) - y(place + bytes), .5));\n"
	"  });\n"
	"  pen.globalAlpha = 1; pen.fillStyle = css('--failed');\n"
	"  for (const [event] of failures) pen.fillRect(x(event) - 1, 0, 2, FAILED);\n"
	"}\n"
	"const at = e => { const r = canvas.getBoundingClientRect(); return {\n"
	"  x: view.x + (e.clientX - r.left) / r.width * view.w, y: view.y + (r.bottom - e.clientY) / r.height * view.h}; };\n"
	"function tell(e) {\n"
	"  const p = at(e);\n"
	"  const hit = boxes.find(([b, n, s, z]) => b <= p.x && p.x < n && s <= p.y && p.y < s + z);\n"
	"  const range = ranges.filter(r => r[1] <= p.y).pop(), near = 3 * view.w / canvas.clientWidth;\n"
	"  const failure = e.clientY - canvas.getBoundingClientRect().top < FAILED && failures.find(([event]) => Math.abs(event - p.x) < near);\n"
	"  if (failure) { get('about').textContent = `Event ${failure[0]}: ${size(failure[1])} failed, ${groups[failure[2]]}, ${source} ${failure[3]}` + (failure[4] && `: ${failure[4]}`); return; }\n"
	"  get('about').textContent = `Event ${Math.max(0, Math.floor(p.x))}` + (!hit ? `, nothing ${source === 'line' ? 'allocated' : 'known'} here` :\n"
	"    `: ${size(hit[3])} at ${range[0] === null ? '' : '0x' + (BigInt(range[0]) + BigInt(hit[2] - range[1])).toString(16)}${range[2]}, ` +\n"
	"    `${groups[hit[4]]}, ${source} ${hit[5]}, live from event ${hit[0]} to ${hit[1]}`);\n"
	"}\n"
	"function zoom(e, factor) {\n"
	"  const p = at(e), w = Math.min(view.w * factor, all.w), h = e.shiftKey ? view.h : Math.min(view.h * factor, all.h);\n"
	"  view = keep({x: p.x - (p.x - view.x) * w / view.w, y: p.y - (p.y - view.y) * h / view.h, w, h}); draw();\n"
	"}\n"
	"const keep = v => ({w: v.w, h: v.h, x: Math.min(Math.max(v.x, 0), all.w - v.w), y: Math.min(Math.max(v.y, 0), all.h - v.h)});\n"
	/* With shift some browsers turn the wheel into a sideways one. */
	"canvas.addEventListener('wheel', e => { e.preventDefault(); zoom(e, (e.deltaY || e.deltaX) < 0 ? .8 : 1.25); }, {passive: false});\n"
	"canvas.addEventListener('pointerdown', e => { hold = at(e); canvas.setPointerCapture(e.pointerId); });\n"
	"canvas.addEventListener('pointerup', () => { hold = null; });\n"
	"canvas.addEventListener('pointermove', e => {\n"
	"  if (hold) { const p = at(e); view = keep({...view, x: view.x + hold.x - p.x, y: view.y + hold.y - p.y}); draw(); }\n"
	"  tell(e);\n"
	"});\n"
	"canvas.addEventListener('dblclick', () => { view = {...all}; draw(); });\n"
	"groups.forEach((name, i) => { const key = document.createElement('span'), mark = document.createElement('i');\n"
	"  key.className = 'key'; mark.style.background = colour(i, 0); key.append(mark, name); get('keys').append(key); });\n"
	"addEventListener('resize', draw);\n"
	"matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);\n"
	"draw();\n"
	"</script>\n";

/* In the script, a text must end neither itself nor the script. It has no escapes left. */
static void write_text(FILE *file, const char *text)
{
	putc('"', file);
	for (; *text; text++) {
		if (strchr("<>&\"'\\", *text))
			fprintf(file, "\\u%04x", (unsigned int)*text);
		else
			putc(*text, file);
	}
	putc('"', file);
}

/*
 * Numbers above 2^53 would lose digits in the page, so addresses are texts. The
 * region is named only if there are several.
 */
static void write_range(FILE *file, const struct map *map, size_t number)
{
	const struct map_range *range = &map->ranges[number];

	if (range->region_id == MAP_NOWHERE) {
		fprintf(file, "%s[null,%" PRIu64 ",\"an address that is not known\"]",
			number ? "," : "", range->place);
		return;
	}
	fprintf(file, "%s[\"%" PRIu64 "\",%" PRIu64 ",\"", number ? "," : "",
		range->address, range->place);
	if (map->ranges[0].region_id != map->ranges[map->range_count - 1].region_id)
		fprintf(file, " of region 0x%" PRIx64, range->region_id);
	fputs("\"]", file);
}

static void write_groups(FILE *file, const struct map *map)
{
	char *name;
	size_t i;

	for (i = 0; i < map->group_count; i++) {
		if (i)
			putc(',', file);
		name = map_group_name(map, &map->groups[i]);
		write_text(file, name);
		free(name);
	}
}

static void write_failures(FILE *file, const struct map *map)
{
	const struct map_failure *failure;
	char *reason;
	size_t i;

	for (i = 0; i < map->failure_count; i++) {
		failure = &map->failures[i];
		fprintf(file, "%s[%" PRIu64 ",%" PRIu64 ",%zu,%" PRIu64 ",",
			i ? "," : "", failure->event, failure->bytes,
			failure->number, failure->from);
		reason = escaped_text(failure->reason ? failure->reason : "");
		write_text(file, reason);
		free(reason);
		putc(']', file);
	}
}

static void write_data(FILE *file, const struct map *map)
{
	size_t i;

	fputs("<script type=\"application/json\" id=\"data\">\n{\"boxes\":[", file);
	for (i = 0; i < map->count; i++)
		fprintf(file, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%zu,%" PRIu64 "]",
			i ? ",\n" : "", map->boxes[i].begin, map->boxes[i].end,
			map->boxes[i].place, map->boxes[i].size,
			map->boxes[i].number, map->boxes[i].from);
	fputs("],\n\"ranges\":[", file);
	for (i = 0; i < map->range_count; i++)
		write_range(file, map, i);
	fputs("],\n\"groups\":[", file);
	write_groups(file, map);
	fputs("],\n\"failures\":[", file);
	write_failures(file, map);
	fprintf(file, "],\n\"events\":%" PRIu64 ",\"height\":%" PRIu64 ",\"source\":\"%s\"",
		map->events, map->height, map->source);
	fputs("}\n</script>\n", file);
}

static void write_notes(FILE *file, const struct map *map)
{
	size_t i;

	if (!map->note_count)
		return;
	fputs("<ul>\n", file);
	for (i = 0; i < map->note_count; i++) {
		fputs("<li>", file);
		map_print_text(file, map->notes[i]);
		fputs("</li>\n", file);
	}
	fputs("</ul>\n", file);
}

void map_write_page(FILE *file, const struct map *map)
{
	char text[FMLIB_HUMAN_MAX];

	fputs(head, file);
	fputs("<title>", file);
	map_print_name(file, map->name);
	fputs("</title></head><body>\n<h1>", file);
	map_print_name(file, map->name);
	fputs("</h1>\n", file);
	if (map->failure_count) {
		fputs("<p id=\"failed\">", file);
		map_print_failures(file, map);
		fputs("</p>\n", file);
	}
	fprintf(file, "<canvas id=\"map\"></canvas>\n<p id=\"about\">%s of addresses from the bottom up, %" PRIu64
		" events from left to right. The wheel zooms, with shift only sideways; drag to move; a double click shows all.</p>\n"
		"<p id=\"keys\"></p>\n", fmlib_human(map->height, text), map->events);
	write_notes(file, map);
	write_data(file, map);
	fputs(script, file);
	fputs("</body></html>\n", file);
}
