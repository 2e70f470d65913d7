/** A build of a history file needs memory for a few pages, however many rows its day has. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createGunzip } from 'node:zlib'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { type BuiltFile, buildFile, type FileSource, readFile } from '../../../api/history/build.ts'
import { CONTENTS } from '../../../api/history/content.ts'
import type { HistoryFill } from '../../../api/history/query.ts'
import { perpetual } from '../../support/markets.ts'

const PAGES = 200
const MOST_ROWS_OF_PAGE = 1_000
/** The page that is written, and those that wait in the buffers of the streams. */
const MOST_PAGES_ALIVE = 8

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const fillAt = (at: number): HistoryFill => ({
  market_id: 1,
  batch_id: Math.floor(at / 10),
  part: 1,
  place: at % 10,
  side: 'LONG',
  forced: false,
  price: 1_000 + (at % 977),
  steps: 1 + (at % 89),
  taker_steps: 0,
  tx_hash: `0x${at.toString(16).padStart(64, '0')}`,
  block: at,
  matched_at: at,
})

describe('memory of a history file', function () {
  this.timeout(120_000)
  let directory: string
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'history-memory-'))
  })
  after(() => rm(directory, { recursive: true }))

  const build = (page: FileSource<HistoryFill>['page']): Promise<BuiltFile> =>
    buildFile(
      directory,
      { spec: perpetual, content: CONTENTS.fills as unknown as FileSource<HistoryFill>['content'], page },
      new AbortController().signal,
    )

  it('when a day has 200 pages, they are read in turn and few of them are in memory at a time', async () => {
    const pages: WeakRef<readonly HistoryFill[]>[] = []
    let [reading, most, alive, largest] = [0, 0, 0, 0]
    const built = await build(async ({ limit, after: last }) => {
      most = Math.max(most, ++reading)
      largest = Math.max(largest, limit)
      await nextTurn()
      const from = last === null ? 0 : last.batch_id * 10 + last.place + 1
      const length = pages.length < PAGES ? limit : 0
      const rows = Array.from({ length }, (_, at) => fillAt(from + at))
      pages.push(new WeakRef(rows))
      if (pages.length % 20 === 0) {
        collectGarbage()
        alive = Math.max(alive, pages.filter((page) => page.deref() !== undefined).length)
      }
      reading--
      return rows
    })
    expect(built.rows).to.equal(PAGES * largest)
    expect(largest).to.be.at.most(MOST_ROWS_OF_PAGE)
    expect(most, 'pages that are read at a time').to.equal(1)
    expect(alive).to.be.within(1, MOST_PAGES_ALIVE)
    await built.handle.close()
  })

  it('when a large file is read slowly, it is passed on in chunks and not loaded', async () => {
    let page = 0
    const built = await build(async ({ limit }) =>
      Array.from({ length: page++ < PAGES ? limit : 0 }, (_, at) => fillAt(page * limit + at)),
    )
    const stream = readFile(built.handle)
    stream.pause()
    await once(stream, 'readable')
    for (let turn = 0; turn < 20; turn++) await nextTurn()
    expect(built.size, 'the file is larger than what is read ahead').to.be.above(3 * 128 * 1024)
    expect(stream.readableLength).to.be.below(3 * 128 * 1024)
    let lines = 0
    for await (const chunk of stream.pipe(createGunzip()))
      for (const byte of chunk as Buffer) if (byte === 10) lines++
    expect(lines).to.equal(1 + built.rows)
    await built.handle.close()
  })
})
