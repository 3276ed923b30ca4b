// What a person does in the workbench, as functions over a Playwright page.

import { existsSync } from "node:fs";
import path from "node:path";
import { chromium } from "playwright-core";

const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];
/** Milliseconds; a cold workbench on a busy machine takes a while. */
const PATIENCE = 30_000;

export class Workbench {
  /** Opens `file` of `workspace` in the workbench that is served at `url`. */
  static async open({ url, workspace, file }) {
    const executablePath = process.env.CHROMIUM ?? BROWSERS.find(existsSync);
    if (executablePath === undefined) {
      throw new Error("no Chromium: apt-get install chromium, or set CHROMIUM to a browser's path");
    }
    const browser = await chromium.launch({ executablePath, headless: true, args: FLAGS });
    const page = await browser.newPage({ viewport: { width: 1440, height: 860 }, deviceScaleFactor: 1.5 });
    page.setDefaultTimeout(PATIENCE);
    const remote = `vscode-remote://${new URL(url).host}${path.join(workspace, file)}`;
    const payload = encodeURIComponent(JSON.stringify([["openFile", remote], ["skipWelcome", "true"]]));
    await page.goto(`${url}/?folder=${encodeURIComponent(workspace)}&payload=${payload}`);
    await page.waitForSelector(".monaco-editor .view-line", { timeout: 2 * PATIENCE });
    await page.keyboard.press("Control+b"); // the side bar makes room
    return new Workbench(browser, page, file);
  }

  constructor(browser, page, file) {
    this.browser = browser;
    this.page = page;
    this.file = file;
  }

  close() {
    return this.browser.close();
  }

  /** The editor whose tab or address ends with `name`. */
  editor(name = this.file) {
    return this.page.locator(`.editor-instance .monaco-editor[data-uri*="${name}"]`).first();
  }

  /** Lines that hold `text`, in the editor of `name`. */
  lines(text, name = this.file) {
    // The editor draws spaces as no-break spaces, which Playwright's text matching treats as equal.
    return this.editor(name).locator(".view-line", { hasText: text });
  }

  /** Puts the cursor into the first editor; lines and columns count from 1. */
  async goTo(line, column) {
    await this.page.keyboard.press("Control+1");
    await this.page.keyboard.press("Control+g");
    await this.quickInput(`:${line}:${column}`);
  }

  /** Opens a file of the workspace in the first group of editors. */
  async openFile(name) {
    await this.page.keyboard.press("Control+1");
    await this.page.keyboard.press("Control+p");
    const box = this.page.locator(".quick-input-widget input.input");
    await box.waitFor();
    await box.fill(name);
    // The row of that name, wherever it stands: Enter would take the first, which need not be it yet.
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().click();
    await this.editor(name).locator(".view-line").first().waitFor();
  }

  /** Types into the quick input that is open and accepts. */
  async quickInput(text) {
    const box = this.page.locator(".quick-input-widget input.input");
    await box.waitFor();
    await box.fill(text);
    await this.page.keyboard.press("Enter");
    await box.waitFor({ state: "hidden" });
  }

  /** Puts the cursor of the focused editor on the next `text`. */
  async find(text) {
    await this.page.keyboard.press("Control+f");
    await this.page.locator(".find-widget.visible").waitFor();
    await this.page.keyboard.type(text);
    await this.page.keyboard.press("Enter");
    await this.page.keyboard.press("Escape");
  }

  /** Runs a command of the palette by its full title. */
  async command(title) {
    await this.page.keyboard.press("F1");
    const box = this.page.locator(".quick-input-widget input.input");
    await box.waitFor();
    await box.fill(`>${title}`);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().waitFor();
    await this.page.keyboard.press("Enter");
    // The command may ask something in the same box at once.
    const isPalette = async () => (await box.isVisible()) && (await box.inputValue()).startsWith(">");
    await this.until("the palette closes", async () => !(await isPalette()));
  }

  /** Replaces the first `from` behind `after` in the buffer, which is `text`, by typing `to`. Returns its line, from 1. */
  async retype(text, from, to, after = 0) {
    const offset = text.indexOf(from, after);
    if (offset < 0) {
      throw new Error(`the example no longer has “${from}”`);
    }
    const before = text.slice(0, offset).split("\n");
    await this.goTo(before.length, before.at(-1).length + 1);
    for (let n = 0; n < from.length; n++) {
      await this.page.keyboard.press("Shift+ArrowRight");
    }
    await this.page.keyboard.type(to, { delay: 5 });
    return before.length;
  }

  /** Clicks a code lens until `effect` shows: one that is drawn anew under the mouse takes no click. */
  async press(title, effect) {
    for (let tries = 1; ; tries++) {
      await this.lens(title).click();
      try {
        return await effect.waitFor({ timeout: 10_000 });
      } catch (error) {
        if (tries === 3) throw error;
      }
    }
  }

  /** A code lens by its title. */
  lens(title) {
    return this.page.locator(".codelens-decoration a, .codelens-decoration span", { hasText: title }).first();
  }

  /** Rests the pointer on `word` in a line that holds `text` and returns the hover that shows `expected`. */
  async hover(text, word, expected) {
    const hover = this.page.locator(".monaco-hover", { hasText: expected });
    await this.page.mouse.move(10, 400);
    await this.page.keyboard.press("Escape");
    await hover.first().waitFor({ state: "hidden" });
    for (let tries = 0; tries < 5 && !(await hover.first().isVisible()); tries++) {
      const box = await this.wordBox(text, word); // lenses that come and go move the lines
      await this.page.mouse.move(10, 400);
      await this.page.mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 4 });
      await hover.first().waitFor({ timeout: PATIENCE / 5 }).catch(() => undefined);
    }
    await hover.first().waitFor({ timeout: 1000 });
    return (await hover.first().innerText()).replace(/\s+/g, " ");
  }

  /** Where `word` is drawn, measured in the text of its line. */
  async wordBox(text, word) {
    const line = this.lines(text).first();
    await line.waitFor();
    return line.evaluate((element, wanted) => {
      const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      const nodes = [];
      for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
        nodes.push(node);
      }
      const whole = nodes.map((node) => node.data).join("").replaceAll("\u00a0", " ");
      let start = whole.indexOf(wanted);
      const node = nodes.find(({ data }) => {
        const here = start < data.length;
        start -= here ? 0 : data.length;
        return here;
      });
      const range = document.createRange();
      range.setStart(node, start);
      range.setEnd(node, Math.min(start + wanted.length, node.length));
      const { x, y, width, height } = range.getBoundingClientRect();
      return { x, y, width, height };
    }, word);
  }

  /** The text after the end of a line that an extension drew there. */
  async noteAfter(text, name = this.file) {
    const spans = this.lines(text, name).first().locator("span[class*='ced-']");
    const contents = await spans.evaluateAll((elements) =>
      elements.map((element) => getComputedStyle(element, "::after").content).filter((content) => content !== "none"),
    );
    return contents.map((content) => content.replace(/^"|"$/g, "").replaceAll("\u00a0", " ")).join("");
  }

  /** Polls until `probe` gives something that is not false, and returns it. */
  async until(what, probe) {
    const deadline = Date.now() + PATIENCE;
    for (;;) {
      const value = await probe();
      if (value) {
        return value;
      }
      if (Date.now() > deadline) {
        throw new Error(`timed out: ${what}`);
      }
      await this.page.waitForTimeout(50);
    }
  }
}
