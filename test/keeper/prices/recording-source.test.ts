/** Recorded prices are known when they were known to the recorder: never before. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Millis } from '../../../domain/units.ts'
import { createRecordingSource, readRecording } from '../../../keeper/adapters/sources/recording.ts'
import type { RecordingTerms } from '../../../keeper/price-file.ts'
import { e18 } from '../../support/markets.ts'

const START = 1_800_000_000_000 as Millis
const FIRST = 1_513_900_800_000

describe('a recorded price source', () => {
  let dir: string
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'clearbatch-recording-'))
  })
  afterEach(() => rm(dir, { recursive: true }))

  async function fileOf(header: string, rows: readonly (readonly (string | number)[])[], zipped = false) {
    const path = join(dir, zipped ? 'prices.csv.gz' : 'prices.csv')
    const text = `${[header, ...rows.map((row) => row.join(','))].join('\n')}\n`
    await writeFile(path, zipped ? gzipSync(text) : text)
    return path
  }
  async function start(path: string, changes: Partial<RecordingTerms> = {}) {
    const source = createRecordingSource({
      ...{ kind: 'recording', name: 'recording', path, speed: 1, startedAt: START, scale: null },
      ...{ maxAge: 5_000 as Millis, maxDeviation: 10_000n },
      ...changes,
    })
    while (source.answer(START, null).fault === 'NOT_READ') await sleep(5)
    return (afterMs: number) => source.answer((START + afterMs) as Millis, null)
  }
  const bars = [
    [FIRST, '100.5', 1, 100, 101, 99],
    [FIRST + 60_000, '101', 1, 100.5, 101, 100],
    [FIRST + 240_000, '90', 1, 101, 101, 90],
  ]
  const HEADER = 'time_ms,price,volume,open,high,low'

  it('when the rows are bars, each is known only at its end', async () => {
    const at = await start(await fileOf(HEADER, bars, true))
    expect(at(0).reading).to.deep.equal({ price: e18('100.5'), observedAt: START })
    expect(at(59_999).reading?.price).to.equal(e18('100.5'))
    expect(at(60_000).reading).to.deep.equal({ price: e18('101'), observedAt: START + 60_000 })
    // Two minutes without a trade have no rows: the reading gets old.
    expect(at(239_999).reading).to.deep.equal({ price: e18('101'), observedAt: START + 60_000 })
    expect(at(240_000).reading?.price).to.equal(e18('90'))
    expect(at(999_999).reading).to.deep.equal({ price: e18('90'), observedAt: START + 240_000 })
    const recording = await readRecording(join(dir, 'prices.csv.gz'))
    expect([recording.barMs, recording.length]).to.deep.equal([60_000, 3])
    expect(recording.first).to.deep.include({ observedAt: FIRST + 60_000 })
  })

  it('when it is replayed faster, times shrink and prices do not', async () => {
    const at = await start(await fileOf(HEADER, bars), { speed: 60 })
    expect(at(1_000).reading).to.deep.equal({ price: e18('101'), observedAt: START + 1_000 })
    expect(at(4_000).reading).to.deep.equal({ price: e18('90'), observedAt: START + 4_000 })
  })

  it('when it is scaled, prices keep their distances in per cent', async () => {
    const scale = { from: e18('100'), to: e18('63000') }
    const at = await start(await fileOf(HEADER, bars), { scale })
    expect(at(240_000).reading?.price).to.equal(e18('56700'))
  })

  it('when reports arrived late, they are known at their arrival and as old as they were', async () => {
    const rows = [
      [FIRST, '62375.021234567890123456', FIRST + 1_300],
      [FIRST + 1_000, '62376', FIRST + 64_000],
      [FIRST + 2_000, '62377', FIRST + 3_000],
    ]
    const at = await start(await fileOf('time_ms,price,recv_ms', rows))
    expect(at(0).reading).to.deep.equal({ price: e18('62375.021234567890123456'), observedAt: START - 1_300 })
    expect(at(60_000).reading?.observedAt).to.equal(START - 1_300)
    expect(at(62_700).reading).to.deep.equal({ price: e18('62377'), observedAt: START + 700 })
  })

  it('when a row is not readable, it is a fault, and the next row counts', async () => {
    const at = await start(
      await fileOf('time_ms,price', [
        [FIRST, '1'],
        [FIRST + 1_000, 'halt'],
        [FIRST + 2_000, '2'],
      ]),
    )
    expect(at(1_500).fault).to.equal('BAD_ROW')
    expect(at(2_000).reading?.price).to.equal(e18('2'))
  })

  it('when the file is missing or has other columns, the fault says which', async () => {
    expect((await start(join(dir, 'none.csv')))(0).fault).to.equal('UNREADABLE')
    expect((await start(await fileOf('market,strike', [['a', 1]])))(0).fault).to.equal('NOT_A_RECORDING')
  })
})
