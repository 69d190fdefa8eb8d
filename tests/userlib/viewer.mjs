// SPDX-License-Identifier: GPL-2.0
// Shows snapshots with PyTorch's own viewer (tests/third_party/MemoryViz.js), as a browser would: each of its three
// views, and in "Allocator State History" each event, by the arrow key.
//
// usage: node --experimental-vm-modules viewer.mjs MEMORYVIZ.JS <SNAPSHOTS
//
// Each line of the standard input is a name, a space, and a pickled snapshot in base64. For each line one goes to
// standard output: {"name", "events", "drawn", "error"}. "drawn" lists the bytes allocated and reserved that the viewer
// shows for each event, from the last one back. "error" is what the viewer threw, or null.
//
// The viewer draws with d3. Here d3 is a stub: it keeps the elements in a tree and draws nothing. Like the real one it
// calls each function that the viewer gives for an element. It refuses a number that no browser could draw.
import {createInterface} from 'node:readline';
import {readFileSync} from 'node:fs';
import vm from 'node:vm';

class Element {
  constructor(tag, datum) {
    Object.assign(this, {tag, datum, children: [], listeners: {}, attributes: {}, words: '', selectedIndex: 0});
  }
  get options() {
    return this.children;
  }
  // The value of a <select> is the text of the option that is chosen: the first, unless another was chosen.
  get value() {
    return this.children[this.selectedIndex]?.words ?? '';
  }
  set value(text) {
    this.selectedIndex = this.children.findIndex(option => option.words === text);
  }
  scrollIntoViewIfNeeded() {}
  *all(tag) {
    for (const child of this.children) {
      if (child.tag === tag) {
        yield child;
      }
      yield* child.all(tag);
    }
  }
}

function drawable(what, value) {
  if (value === undefined || /\b(NaN|undefined|Infinity)\b/.test(String(value))) {
    throw new Error(`${what} is ${value}`);
  }
  return String(value);
}

// A selection of elements. @parent is where enter() appends.
class Selection {
  constructor(elements, parent) {
    Object.assign(this, {elements, parent});
  }
  each(value, use) {
    this.elements.forEach((element, i) => use(element, typeof value === 'function' ? value(element.datum, i) : value));
    return this;
  }
  append(tag) {
    return new Selection(this.elements.map(element => {
      const child = new Element(tag, element.datum);
      element.children.push(child);
      return child;
    }));
  }
  selectAll(tag) {
    return new Selection(this.elements.flatMap(element => [...element.all(tag)]), this.elements[0]);
  }
  data(list) {
    const {parent} = this;
    const missing = list.slice(this.elements.length);
    return {
      enter: () => ({
        append: tag => {
          const added = missing.map(datum => new Element(tag, datum));
          parent.children.push(...added);
          return new Selection(added, parent);
        },
      }),
    };
  }
  remove() {
    const gone = new Set(this.elements);
    const prune = element => {
      element.children = element.children.filter(child => !gone.has(child));
      element.children.forEach(prune);
    };
    if (this.parent) {
      prune(this.parent);
    }
  }
  attr(name, value) {
    return this.each(value, (element, found) => {
      element.attributes[name] = found === null ? null : drawable(`${element.tag}.${name}`, found);
    });
  }
  text(value) {
    return this.each(value, (element, found) => (element.words = drawable(`the text of ${element.tag}`, found)));
  }
  html(value) {
    return this.text(value);
  }
  on(name, listener) {
    return this.each(null, element => (element.listeners[name] = listener));
  }
  call(use) {
    use(this);
    return this;
  }
  node() {
    return this.elements[0];
  }
  datum() {
    return this.elements[0].datum;
  }
}

function scaleLinear() {
  let [a, b, c, d] = [0, 1, 0, 1];
  // As in d3, a domain without a width maps to the middle of the range.
  const scale = x => (a === b ? (c + d) / 2 : c + ((x - a) / (b - a)) * (d - c));
  scale.invert = y => a + ((y - c) / (d - c)) * (b - a);
  scale.domain = list => (([a, b] = list), scale);
  scale.range = list => (([c, d] = list), scale);
  return scale;
}

// An object that can be called, and whose methods do nothing but return it.
function idle(...methods) {
  const it = () => it;
  for (const name of methods) {
    it[name] = () => it;
  }
  return it;
}

// A page with the viewer, without snapshots.
class Page {
  constructor(viewer) {
    this.body = new Element('body');
    this.head = new Element('head');
    this.frames = [];
    this.viewer = viewer;
  }
  modules() {
    const select = what => new Selection([what instanceof Element ? what : this[what]]);
    return {
      d3: {select, format: () => String, event: null},
      'd3-axis': {axisLeft: () => idle('tickFormat', 'scale')},
      'd3-scale': {scaleLinear},
      'd3-zoom': {zoom: () => idle('on', 'transform'), zoomIdentity: idle('scale', 'translate')},
      'd3-brush': {brushX: () => idle('extent', 'on')},
    };
  }
  async load() {
    const context = vm.createContext({
      console: {log() {}},
      TextDecoder,
      window: {requestAnimationFrame: then => this.frames.push(then)},
    });
    const stubs = this.modules();
    this.module = new vm.SourceTextModule(this.viewer, {context, identifier: 'MemoryViz.js'});
    await this.module.link(name => {
      const stub = stubs[name.match(/\/(d3[a-z-]*)@/)[1]];
      const made = new vm.SyntheticModule(Object.keys(stub), () => {
        Object.entries(stub).forEach(([key, value]) => made.setExport(key, value));
      }, {context});
      if (stub === stubs.d3) {
        this.d3 = made;
      }
      return made;
    });
    await this.module.evaluate();
  }
  send(element, type, event) {
    this.d3.setExport('event', {target: element, preventDefault() {}, ...event});
    element.listeners[type]?.call(element);
  }
  open(base64, view) {
    this.module.namespace.add_local_files([{name: 'snapshot', base64}], view);
    this.draw();
  }
  draw() {
    this.frames.splice(0).forEach(then => then());
  }
  // Chooses another view, in the second list at the top of the page.
  choose(view) {
    const [, list] = this.body.all('select');
    list.value = view;
    this.send(list, 'change');
    this.draw();
  }
  // Moves the mouse over each element, so that the viewer prints what it knows of it.
  explain() {
    for (const tag of ['rect', 'polygon', 'pre']) {
      for (const element of this.body.all(tag)) {
        this.send(element, 'mouseover');
      }
    }
  }
  // "(1.0KiB (1024 bytes) allocated / 2.0MiB (2097152 bytes) reserved)" of the event that is shown.
  figures() {
    for (const {words} of this.body.all('pre')) {
      const found = /^\(.*?\((\d+) bytes\) allocated \/ .*?\((\d+) bytes\) reserved\)/.exec(words);
      if (found) {
        return [Number(found[1]), Number(found[2])];
      }
    }
    return null;
  }
}

async function show(viewer, base64) {
  const page = new Page(viewer);
  const drawn = [];

  await page.load();
  page.open(base64, 'Allocator State History');
  const events = [...page.body.all('pre')].map(line => line.datum).filter(Boolean);
  for (const {action, size} of events.reverse()) {
    drawn.push([action, size, ...page.figures()]);
    page.send(page.body, 'keydown', {key: 'ArrowUp'});
  }
  page.choose('Active Memory Timeline');
  page.choose('Active Cached Segment Timeline');
  page.explain();
  return drawn;
}

const viewer = readFileSync(process.argv[2], 'utf8');
for await (const line of createInterface({input: process.stdin})) {
  const [name, base64] = line.split(' ');
  let drawn = [];
  let error = null;
  try {
    drawn = await show(viewer, base64);
  } catch (thrown) {
    error = String(thrown?.stack ?? thrown);
  }
  console.log(JSON.stringify({name, drawn, error}));
}
