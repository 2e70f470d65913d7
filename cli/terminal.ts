/** Standard streams of a command: results on stdout, everything else on stderr. */
import { createInterface } from 'node:readline/promises'
import type { Readable, Writable } from 'node:stream'
import { CommandError, EXIT } from './failure.ts'

export interface Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number }
  readonly stderr: Writable & { readonly isTTY?: boolean }
}

/** The alternate screen, without a cursor; lines that are too long are cut, not wrapped. */
const OPEN_SCREEN = '\x1b[?1049h\x1b[?25l\x1b[?7l'
const CLOSE_SCREEN = '\x1b[?7h\x1b[?25h\x1b[?1049l'

export class Terminal {
  readonly #streams: Streams
  readonly #hasColour: boolean

  constructor(streams: Streams, env: Readonly<Record<string, string | undefined>>) {
    this.#streams = streams
    this.#hasColour = streams.stdout.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
  }

  get isInteractive(): boolean {
    return this.#streams.stdin.isTTY === true && this.#streams.stderr.isTTY === true
  }

  get isScreen(): boolean {
    return this.#streams.stdout.isTTY === true
  }

  get rows(): number {
    return this.#streams.stdout.rows ?? 40
  }

  out(text: string): void {
    this.#streams.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
  }

  /** Draws on a screen of its own. Returns the function that restores the terminal and its earlier text. */
  openScreen(onResize: () => void): () => void {
    const { stdout } = this.#streams
    stdout.on('resize', onResize)
    stdout.write(OPEN_SCREEN)
    return () => {
      stdout.off('resize', onResize)
      stdout.write(CLOSE_SCREEN)
    }
  }

  /** Replaces the screen in one write, line by line, so that it does not flicker. */
  draw(lines: readonly string[]): void {
    this.#streams.stdout.write(`\x1b[H${lines.join('\x1b[K\n')}\x1b[K\x1b[J`)
  }

  note(text: string): void {
    this.#streams.stderr.write(`${text}\n`)
  }

  /** On one line that the next call replaces; nothing where stderr is no terminal. */
  progress(text: string): void {
    if (this.#streams.stderr.isTTY === true) this.#streams.stderr.write(`\r\x1b[K${text}`)
  }

  colour(text: string, colour: 'red' | 'green' | 'bold' | 'dim'): string {
    const codes = { red: 31, green: 32, bold: 1, dim: 2 }
    return this.#hasColour ? `\x1b[${codes[colour]}m${text}\x1b[0m` : text
  }

  async ask(question: string): Promise<string> {
    if (!this.isInteractive) throw new CommandError(`${question} needs a terminal to answer`, EXIT.usage)
    const reader = createInterface({ input: this.#streams.stdin, output: this.#streams.stderr })
    try {
      return (await reader.question(question)).trim()
    } finally {
      reader.close()
    }
  }

  /** Throws unless the person agrees. Without a terminal `--yes` is required. */
  async confirm(question: string): Promise<void> {
    if (!this.isInteractive)
      throw new CommandError(
        'this command asks before it acts, and there is no terminal: pass --yes or --dry-run',
        EXIT.usage,
      )
    const answer = await this.ask(`${question} [y/N] `)
    if (!/^y(es)?$/i.test(answer)) throw new CommandError('not confirmed: nothing was sent')
  }
}
