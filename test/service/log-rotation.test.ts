/** Log files are bounded by size and number, and lose no line. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { KEPT_LOGS, rotateLog } from '../../service/log-rotation.ts'

const PROGRAM = fileURLToPath(new URL('support/line-logger.ts', import.meta.url))

describe('the rotation of log files', function () {
  this.timeout(60_000)
  let dir: string
  let path: string

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'clearbatch-logs-'))
    path = join(dir, 'lines.log')
  })
  afterEach(() => rmSync(dir, { recursive: true }))

  async function run(lines: number, bytes: number): Promise<void> {
    const output = openSync(path, 'a')
    const child = spawn(process.execPath, [PROGRAM], {
      env: { PATH: process.env.PATH, LINES: `${lines}`, LOG_FILE_BYTES: `${bytes}` },
      stdio: ['ignore', output, output],
    })
    expect(await once(child, 'exit')).to.deep.equal([0, null])
  }

  /** From the oldest on. */
  const texts = (): string[] =>
    readdirSync(dir)
      .toSorted()
      .toReversed()
      .map((name) => readFileSync(join(dir, name), 'utf8'))

  it('when a process logs more than a file may have, older files have its lines in order, and none is lost', async () => {
    const lines = 3_000
    await run(lines, 100_000)
    const text = texts().join('')
    const numbers = [...text.matchAll(/"line":(\d+)/g)].map(([, line]) => Number(line))
    expect(numbers).to.deep.equal(Array.from({ length: lines }, (_, at) => at))
    expect(text.match(/^beside \d+$/gm)).to.have.length(lines / 50)
    expect(readdirSync(dir).length).to.be.within(3, KEPT_LOGS + 1)
  })

  it('when the log goes on, the number of files and their sizes stay bounded', async () => {
    const bytes = 20_000
    await run(8_000, bytes)
    const names = readdirSync(dir).toSorted()
    expect(names).to.deep.equal([
      'lines.log',
      ...Array.from({ length: KEPT_LOGS }, (_, at) => `lines.log.${at + 1}`),
    ])
    // A file exceeds its bound by at most one write.
    for (const name of names) expect(statSync(join(dir, name)).size).to.be.below(bytes + 64 * 1024 + 1_000)
    // The last lines can themselves be the reason for a rotation, which leaves the current file empty.
    expect(texts().join('')).to.match(/lines stopped[^\n]*\n$/)
  })

  it('when no size is set, the file is never rotated', async () => {
    await run(1_000, 0)
    expect(readdirSync(dir)).to.deep.equal(['lines.log'])
  })

  it('when another process writes during the copy, its lines are kept', async () => {
    writeFileSync(path, 'before\n')
    const rotated = rotateLog(path)
    appendFileSync(path, 'during\n')
    await rotated
    appendFileSync(path, 'after\n')
    expect(texts()).to.deep.equal(['before\nduring\n', 'after\n'])
  })

  it('when an earlier rotation was interrupted, its copy is replaced', async () => {
    writeFileSync(path, 'line\n')
    writeFileSync(`${path}.copy`, 'a part of an earlier copy\n')
    await rotateLog(path)
    expect(texts()).to.deep.equal(['line\n', ''])
  })
})
