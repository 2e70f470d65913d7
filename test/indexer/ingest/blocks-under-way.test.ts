/** Blocks that are sent to the engine while it applies earlier blocks. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Db } from '../../../db/client.ts'
import type { Address, Millis } from '../../../domain/units.ts'
import { createEngineRecord } from '../../../indexer/ingest/engine-record.ts'

type Answer = { readonly kind: string; readonly [field: string]: unknown }

const LOGGER = { info() {}, warn() {}, error() {}, debug() {} }
const chain = {
  position: () => Promise.reject(new Error('no position is read')),
  block: () => Promise.reject(new Error('no block is read')),
}
/** The database has nothing that these blocks name. */
const none = {
  execute: async () => [],
  where: () => none,
  select: () => none,
  selectAll: () => none,
  orderBy: () => none,
}
const db = { selectFrom: () => none } as unknown as Db

const blockOf = (number: number) => ({
  number,
  hash: `0x${number}`,
  parentHash: `0x${number - 1}`,
  timestamp: number as Millis,
  transactions: [],
})

/** Sends block 1, and block 2 while the engine has not answered. */
function sendTwo() {
  const asked: { readonly kind: string; readonly number: number | null; answer(reply: object): void }[] = []
  const engine = {
    inform: async () => {},
    submit: (command: object) =>
      new Promise((resolve) => {
        const { kind, block } = command as { kind: string; block?: { number: number } }
        asked.push({ kind, number: block?.number ?? null, answer: resolve })
      }),
  }
  const record = createEngineRecord(
    { db, engine: engine as never, chain: chain as never, logger: LOGGER as never },
    1,
  )
  const send = (number: number) => {
    const log = {
      block: number,
      blockHash: `0x${number}`,
      logIndex: 0,
      txHash: `0xt${number}`,
      address: '0x' as Address,
      topics: [],
      data: '0x',
    }
    const facts = [{ log, fact: { kind: 'ignored', event: 'Test' } as const }]
    return record
      .ingest({ from: number, block: blockOf(number), facts, mismatches: [] })
      .catch((error) => String(error))
  }
  const outcomes = [send(1), send(2)]
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
  return {
    asked,
    outcomes: () => Promise.all(outcomes),
    kinds: () => asked.map(({ kind, number }) => `${kind} ${number}`),
    async reply(at: number, answer: Answer): Promise<void> {
      await turn()
      asked[at]?.answer({ answer })
      await turn()
      await turn()
    },
    async lose(at: number): Promise<void> {
      await turn()
      asked[at]?.answer({ none: 'unknown' })
      await turn()
    },
  }
}

describe('blocks on their way to the engine', () => {
  it('when both follow, they are sent in their order without an answer in between', async () => {
    const { kinds, outcomes, reply } = sendTwo()
    await reply(0, { kind: 'done', nextBlock: 2 })
    expect(kinds()).to.deep.equal(['apply_block 1', 'apply_block 2'])
    await reply(1, { kind: 'done', nextBlock: 3 })
    for (const outcome of await outcomes()) expect(outcome).to.have.property('kind', 'recorded')
  })

  for (const answer of [
    { kind: 'fork', tip: 1 },
    { kind: 'not_next', nextBlock: 1 },
  ])
    it(`when the engine is within the first one and answers ${answer.kind}, the second one is asked again behind it, and nothing is rolled back`, async () => {
      const { kinds, outcomes, reply } = sendTwo()
      await reply(1, answer)
      expect(kinds()).to.deep.equal(['apply_block 1', 'apply_block 2'])
      await reply(0, { kind: 'done', nextBlock: 2 })
      await reply(2, { kind: 'done', nextBlock: 3 })
      expect(kinds()).to.deep.equal(['apply_block 1', 'apply_block 2', 'apply_block 2'])
      for (const outcome of await outcomes()) expect(outcome).to.have.property('kind', 'recorded')
    })

  it('when the first one has no answer, the second one is overtaken, and nothing is rolled back', async () => {
    const { kinds, lose, outcomes, reply } = sendTwo()
    await reply(1, { kind: 'fork', tip: 1 })
    await lose(0)
    const [first, second] = await outcomes()
    expect(first).to.include('EngineError')
    expect(second).to.deep.equal({ kind: 'overtaken' })
    expect(kinds()).to.deep.equal(['apply_block 1', 'apply_block 2'])
  })
})
