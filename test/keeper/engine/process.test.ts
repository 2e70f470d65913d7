/** The engine as a process: it answers its clients, and another process continues after its end. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { requestKey } from '../../../domain/exchange/decide/orders/command-keys.ts'
import type { Address, UserId } from '../../../domain/units.ts'
import { ask, type Engine } from '../../../keeper/engine/link/engine.ts'
import { perpetual } from '../../support/markets.ts'
import { waitFor } from '../../support/patience.ts'
import { listMarket } from '../../support/rows/markets.ts'
import { EngineCluster } from '../support/engine-process.ts'

const addressOf = (number: number): Address => `0x${number.toString(16).padStart(40, '0')}` as Address
/** The engine refuses its signer. */
const ORDER = {
  marketId: perpetual.marketId,
  maker: addressOf(1),
  side: 'LONG',
  type: 'LIMIT',
  price: 1000,
  quantity: 5,
  trigger: 0,
  leverage: 2,
  reduceOnly: false,
  expiration: 0,
  salt: 7n,
  hash: `0x${'ab'.repeat(32)}`,
  signer: addressOf(2),
  signature: `0x${'11'.repeat(66)}`,
} as never
const BUDGET_MS = 30_000
const REQUEST = { id: 'one', digest: 'ff', absentUpTo: null }

const logIn = async (engine: Engine, number: number): Promise<UserId> =>
  (await ask<'log_in'>(engine, { kind: 'log_in', address: addressOf(number) }, BUDGET_MS)).userId

describe('the engine as a process', () => {
  let cluster: EngineCluster
  beforeEach(async () => {
    cluster = await EngineCluster.create()
    await listMarket(cluster.db, perpetual)
  })
  afterEach(() => cluster.stop())

  it('when clients send commands, each is answered, and what it has written is in the journal', async () => {
    await cluster.start()
    const api = await cluster.connect('api')
    expect([await logIn(api, 1), await logIn(api, 2), await logIn(api, 1)]).to.deep.equal([1, 2, 1])
    const operator = await cluster.connect('operator')
    const setting = { kind: 'calendar', calendar: 'NYSE' } as const
    expect(
      await ask<'operator'>(operator, { kind: 'operator', marketId: perpetual.marketId, setting }, BUDGET_MS),
    ).to.deep.equal({ kind: 'done' })
    const groups = await cluster.db.selectFrom('engine_groups').selectAll().orderBy('number').execute()
    const kinds = groups.flatMap(({ rows }) =>
      (rows as { row: { kind: string } }[]).map(({ row }) => row.kind),
    )
    expect(kinds).to.deep.equal(['market_listed', 'user_created', 'user_created', 'calendar_set'])
  })

  it('when a client sends a command of another role, or an unknown one, it is refused and nothing is written', async () => {
    await cluster.start()
    const worker = await cluster.connect('worker')
    const command = { kind: 'log_in', address: addressOf(1) } as const
    expect(await worker.submit<'log_in'>(command, BUDGET_MS)).to.deep.include({ none: 'forbidden' })
    const unknown = { kind: 'constructor' } as unknown as typeof command
    expect(await worker.submit<'log_in'>(unknown, BUDGET_MS)).to.deep.include({ none: 'invalid' })
    expect(await cluster.db.selectFrom('engine_groups').select('number').execute()).to.have.length(1)
  })

  it('when the owner is killed, a follower owns the journal and knows every answered command', async () => {
    const owner = await cluster.start()
    await cluster.start()
    const api = await cluster.connect('api')
    for (let number = 1; number <= 20; number++) await logIn(api, number)
    await owner.kill('SIGKILL')
    expect(await logIn(api, 20)).to.equal(20)
    expect(await logIn(api, 21)).to.equal(21)
  })

  it('when the owner is frozen and keeps its connections, the follower answers, and the former owner gives up afterwards', async () => {
    const owner = await cluster.start()
    await cluster.start()
    const api = await cluster.connect('api')
    await logIn(api, 1)
    owner.signal('SIGSTOP')
    // A command that is sent to the frozen owner has an unknown outcome; its repetition is answered by the other member.
    const answered = await waitFor(
      () => logIn(api, 2).catch(() => null),
      (userId) => userId !== null,
    )
    expect(answered).to.equal(2)
    owner.signal('SIGCONT')
    expect((await owner.ended())[0]).to.equal(1)
    expect([await logIn(api, 1), await logIn(api, 3)]).to.deep.equal([1, 3])
  })

  it('when the owner is frozen and keeps its lease, a command in its socket is not executed behind its budget', async () => {
    const owner = await cluster.start({ LEASE_MS: '60000' })
    const api = await cluster.connect('api')
    expect(await logIn(api, 1)).to.equal(1)
    owner.signal('SIGSTOP')
    const late = api.submit<'log_in'>({ kind: 'log_in', address: addressOf(2) }, 100)
    expect(await late).to.deep.equal({ none: 'unknown' })
    owner.signal('SIGCONT')
    // User 2 is the next one that is created.
    expect([await logIn(api, 3), await logIn(api, 2)]).to.deep.equal([2, 3])
  })

  it('when an api answers that an order was not placed, the engine executes no attempt that another api had received', async () => {
    await cluster.start()
    const [frozen, other] = [await cluster.connect('api'), await cluster.connect('api')]
    const userId = await logIn(frozen, 1)
    const command = { kind: 'orders', userId, isAtomic: false, items: [], request: REQUEST } as const
    const receivedAt = performance.now()
    const fences = [requestKey(userId, REQUEST.id)]
    expect(await other.submit<'barrier'>({ kind: 'barrier', fences }, BUDGET_MS)).to.have.property('answer')
    expect(await frozen.submit<'orders'>(command, BUDGET_MS, receivedAt)).to.deep.equal({
      none: 'not_executed',
    })
    expect(await other.submit<'orders'>(command, BUDGET_MS)).to.have.property('answer')
  })

  it('when the owner is killed between two attempts at a placement, the next owner executes only the later one', async () => {
    const owner = await cluster.start()
    await cluster.start()
    const api = await cluster.connect('api')
    const userId = await logIn(api, 1)
    const item = { kind: 'place', order: ORDER, clientOrderId: null, absentUpTo: null } as const
    const command = { kind: 'orders', userId, isAtomic: false, items: [item], request: null } as const
    const receivedAt = performance.now()
    await owner.kill('SIGKILL')
    // Answered by the next owner.
    expect(await logIn(api, 1)).to.equal(userId)
    expect(await api.submit<'orders'>(command, BUDGET_MS, receivedAt)).to.deep.equal({ none: 'not_executed' })
    expect(await api.submit<'orders'>(command, BUDGET_MS)).to.have.property('answer')
  })

  it('when the owner is stopped in order, it answers what it has and the follower owns the journal at once', async () => {
    const owner = await cluster.start()
    await cluster.start()
    const api = await cluster.connect('api')
    const first = Array.from({ length: 50 }, (_, at) => logIn(api, at + 1))
    const [end] = await Promise.all([owner.kill('SIGTERM'), ...first])
    expect(end).to.deep.equal([0, null])
    expect(new Set(await Promise.all(first)).size).to.equal(50)
    expect(await logIn(api, 51)).to.equal(51)
  })

  it('when the journal has grown by enough rows, a checkpoint is written, and a later process starts from it', async () => {
    const owner = await cluster.start({ CHECKPOINT_ROWS: '20' })
    const api = await cluster.connect('api')
    for (let number = 1; number <= 30; number++) await logIn(api, number)
    const read = () => cluster.db.selectFrom('engine_checkpoints').select(['number', 'is_complete']).execute()
    const [checkpoint] = await waitFor(read, ([first]) => first?.is_complete === true)
    await owner.kill('SIGKILL')
    // Without the groups before it, the state can only come from the checkpoint.
    await cluster.db
      .deleteFrom('engine_groups')
      .where('number', '<', checkpoint?.number as number)
      .where('number', '>', 1)
      .execute()
    await cluster.start()
    const later = await cluster.connect('api')
    expect(await logIn(later, 30)).to.equal(30)
    expect(await logIn(later, 31)).to.equal(31)
  })

  it('when the journal was written without an engine, the process ends and says what helps', async () => {
    await cluster.db.deleteFrom('engine_groups').execute()
    const failure = await cluster.start().then(
      () => 'started',
      (error: Error) => error.message,
    )
    expect(failure).to.contain('npm start -- --fresh')
  })
})
