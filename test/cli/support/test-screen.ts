/** A terminal of a command in this process: it keeps what was written, and shows the last frame. */
import { Writable } from 'node:stream'

/** The text after the last return to the upper left corner, by lines, without control sequences. */
export function lastFrame(written: string): readonly string[] {
  const frame = written.slice(written.lastIndexOf('\x1b[H') + 3)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminals are controlled by them
  return frame.replaceAll(/\x1b\[[?\d;]*[a-zA-Z]/g, '').split(/\r?\n/)
}

export class TestScreen extends Writable {
  readonly isTTY = true
  rows: number
  written = ''

  constructor(rows: number) {
    super()
    this.rows = rows
  }

  get frame(): readonly string[] {
    return lastFrame(this.written)
  }

  resize(rows: number): void {
    this.rows = rows
    this.emit('resize')
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.written += chunk.toString()
    done()
  }
}
