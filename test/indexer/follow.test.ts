/** The follower against a real chain, the real contracts and a real database. */
import { expect } from 'chai'
import type { Wallet } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { OtherChainError } from '../../indexer/blocks.ts'
import type { Follower } from '../../indexer/follow.ts'
import type { Chain } from '../../indexer/ports.ts'
import { useAnvil } from '../support/anvil.ts'
import { chainState, expectBooks, expectConservation, expectPositions } from './support/audit.ts'
import type { TestDatabase } from './support/database.ts'
import { matchPart } from './support/desk.ts'
import { addressOf, CHAIN_ID, catchUp, type FillInput, projectAll, World } from './support/world.ts'

describe('following the chain', () => {
  const anvil = useAnvil({ chainId: CHAIN_ID })
  let world: World
  let test: TestDatabase
  let chain: Chain & { close(): void }
  let follower: Follower
  let alice: Wallet
  let bob: Wallet
  let users: Wallet[]
  const open: { close(): unknown }[] = []

  before(async () => {
    world = await World.deploy(anvil.url)
    alice = await world.user('alice')
    bob = await world.user('bob')
    users = [alice, bob]
  })

  let snapshot: string
  beforeEach(async () => {
    snapshot = await world.rpc('evm_snapshot')
    test = await world.database()
    chain = world.chain()
    follower = world.follower(test, chain)
    open.push(test, chain)
  })
  afterEach(async () => {
    await world.rpc('evm_revert', snapshot)
    for (const resource of open.splice(0)) await resource.close()
  })
  after(() => world.provider.destroy())

  let salts = 1n
  const pair = (fill: number, more: Partial<FillInput> = {}): FillInput[] => [
    { by: alice, side: 'LONG', fill, salt: salts++, ...more },
    { by: bob, side: 'SHORT', fill, salt: salts++ },
  ]

  const fund = async (): Promise<void> => {
    await world.deposit(alice, '10000')
    await world.deposit(bob, '10000')
  }

  async function audit(): Promise<void> {
    await projectAll(test)
    await expectConservation(world, test.db, users)
    await expectPositions(world, test.db, users)
    await expectBooks(test.db)
  }

  /** Matched here, then settled on the chain. */
  async function trade(fills: readonly FillInput[]): Promise<string> {
    const part = await world.part(fills)
    const hash = await world.send(part)
    await matchPart(test.db, part, hash)
    return hash
  }

  const modeOf = async (): Promise<string> =>
    (await test.db.selectFrom('markets').select('mode').executeTakeFirstOrThrow()).mode

  const mismatches = () => test.db.selectFrom('settlement_mismatches').selectAll().execute()

  // ---------------------------------------------------------------------- facts

  it('given a first deposit, it makes a user with that balance', async () => {
    await world.deposit(alice, '250.5')
    await catchUp(follower)
    await audit()
    const read = await test.db
      .selectFrom('read.users')
      .innerJoin('read.balances', 'read.balances.user_id', 'read.users.user_id')
      .select(['address', 'free'])
      .execute()
    expect(read).to.deep.equal([{ address: addressOf(alice), free: 250_500_000_000_000_000_000n }])
  })

  it('given a withdrawal, it leaves free when asked for and the exchange when paid', async () => {
    await fund()
    await (await world.bank.connect(alice).requestWithdrawal(400n)).wait()
    await catchUp(follower)
    await audit()
    await world.rpc('evm_increaseTime', 100)
    await (await world.bank.connect(alice).withdraw()).wait()
    await catchUp(follower)
    await audit()
    const causes = await test.db
      .selectFrom('shard_log')
      .select('row')
      .where('shard', '=', 'accounts')
      .execute()
    expect(causes.map(({ row }) => ('cause' in row ? row.cause : row.kind))).to.deep.equal([
      'user_created',
      'deposit',
      'user_created',
      'deposit',
      'withdrawal_request',
      'withdrawal',
    ])
  })

  it('given a settled batch, it moves positions, balances, orders and fills', async () => {
    await fund()
    await catchUp(follower)
    const hash = await trade(pair(500))
    await catchUp(follower)
    await audit()
    const orders = await test.db.selectFrom('orders').select(['status', 'status_reason', 'held']).execute()
    expect(orders).to.deep.equal(Array(2).fill({ status: 'FILLED', status_reason: 'FILLED', held: 0n }))
    const read = await test.db.selectFrom('read.fills').select(['status', 'tx_hash', 'fee']).execute()
    expect(read.map(({ status, tx_hash }) => [status, tx_hash])).to.deep.equal([
      ['MINED', hash],
      ['MINED', hash],
    ])
    expect(read.some(({ fee }) => fee === 0n) && read.some(({ fee }) => fee !== null && fee > 0n)).to.equal(
      true,
    )
    const batch = await test.db.selectFrom('batches').select('status').executeTakeFirstOrThrow()
    const action = await test.db.selectFrom('actions').select('status').executeTakeFirstOrThrow()
    expect([batch.status, action.status]).to.deep.equal(['SETTLED', 'MINED'])
    expect(await mismatches()).to.deep.equal([])
  })

  it('given positions that grow, shrink and turn, it keeps what is realised', async () => {
    await fund()
    await catchUp(follower)
    for (const [side, other, fill] of [
      ['LONG', 'SHORT', 500],
      ['LONG', 'SHORT', 100],
      ['SHORT', 'LONG', 250],
      ['SHORT', 'LONG', 900],
    ] as const) {
      await trade([
        { by: alice, side, fill, salt: salts++ },
        { by: bob, side: other, fill, salt: salts++ },
      ])
      await catchUp(follower)
      await audit()
    }
    const { size, realized_pnl, pending } = await test.db
      .selectFrom('read.positions')
      .innerJoin('read.users', 'read.users.user_id', 'read.positions.user_id')
      .select(['size', 'realized_pnl', 'pending'])
      .where('address', '=', addressOf(alice))
      .executeTakeFirstOrThrow()
    expect({ size, realized_pnl, pending }).to.deep.equal({ size: -550, realized_pnl: 0n, pending: 0 })
    expect(await mismatches()).to.deep.equal([])
  })

  it('given a withdrawal that still backs a batch, it pays the margin', async () => {
    await fund()
    await catchUp(follower)
    await (
      await world.bank.connect(bob).requestWithdrawal((await world.bank.account(bob.address)).free)
    ).wait()
    await trade(pair(500))
    await catchUp(follower)
    await audit()
    const { free, pending_withdrawal } = await test.db
      .selectFrom('accounts')
      .innerJoin('users', 'users.user_id', 'accounts.user_id')
      .select(['free', 'pending_withdrawal'])
      .where('address', '=', addressOf(bob))
      .executeTakeFirstOrThrow()
    expect(free).to.equal(0n)
    expect(pending_withdrawal > 0n && pending_withdrawal < 10_000n * 10n ** 18n).to.equal(true)
  })

  it('given one more block, it confirms the fills', async () => {
    await fund()
    await catchUp(follower)
    await trade(pair(500))
    await catchUp(follower)
    await world.rpc('anvil_mine', '0x1')
    await catchUp(follower)
    await audit()
    const fills = await test.db.selectFrom('read.fills').select('status').execute()
    expect(fills.map(({ status }) => status)).to.deep.equal(['CONFIRMED', 'CONFIRMED'])
  })

  it('given a partial fill of an order that waits for its cancel, it ends the order', async () => {
    await fund()
    await catchUp(follower)
    await trade(pair(300, { quantity: 900, slot: 0 }))
    await test.db
      .updateTable('orders')
      .set({ status: 'CANCEL_PENDING_FINALIZE', closing_reason: 'USER_CANCELLED' })
      .where('maker', '=', addressOf(alice))
      .execute()
    await catchUp(follower)
    await audit()
    const order = await test.db
      .selectFrom('orders')
      .selectAll()
      .where('maker', '=', addressOf(alice))
      .executeTakeFirstOrThrow()
    const { status, status_reason, filled, settling, reserved } = order
    expect({ status, status_reason, filled, settling, reserved }).to.deep.equal({
      ...{ status: 'CANCELLED', status_reason: 'USER_CANCELLED', filled: 300, settling: 0, reserved: 0n },
    })
    const events = await test.db
      .selectFrom('read.order_events')
      .select('kind')
      .where('order_id', '=', order.order_id)
      .orderBy('seq')
      .orderBy('place')
      .execute()
    expect(events.map(({ kind }) => kind)).to.deep.equal(['CREATED', 'PARTIALLY_FILLED', 'CANCELLED'])
  })

  it('given salts cancelled on the chain, it ends the open order', async () => {
    await fund()
    await catchUp(follower)
    await trade(pair(300, { quantity: 900, slot: 0, salt: 77n }))
    await catchUp(follower)
    await (await world.trader.connect(alice).cancelSalts([77n])).wait()
    await catchUp(follower)
    await audit()
    const order = await test.db
      .selectFrom('read.orders')
      .select(['status', 'status_reason'])
      .where('salt', '=', 77)
      .executeTakeFirstOrThrow()
    expect(order).to.deep.equal({ status: 'CANCELLED', status_reason: 'USER_CANCELLED' })
    expect(await test.db.selectFrom('read.book_levels').selectAll().execute()).to.deep.equal([])
  })

  it('given a withdrawal that leaves orders uncovered, it cancels the newest of them', async () => {
    await fund()
    await catchUp(follower)
    await trade(pair(300, { quantity: 900, slot: 0 }))
    await trade(pair(300, { quantity: 500, slot: 1 }))
    await catchUp(follower)
    // The first of the two still covers its 600 steps, and nothing covers the 200 of the second.
    const free = (await world.bank.account(alice.address)).free
    await (await world.bank.connect(alice).requestWithdrawal(free - 7_000n)).wait()
    await catchUp(follower)
    await audit()
    const orders = await test.db
      .selectFrom('read.orders')
      .select(['status', 'status_reason', 'reserved'])
      .where('quantity', '>', 300)
      .orderBy('seq')
      .execute()
    expect(orders).to.deep.equal([
      { status: 'OPEN', status_reason: null, reserved: 6_000n },
      { status: 'CANCELLED', status_reason: 'INSUFFICIENT_MARGIN', reserved: 0n },
    ])
  })

  it('given collected fees, they are the treasury’s', async () => {
    await fund()
    await catchUp(follower)
    await trade(pair(500))
    const admin = await world.provider.getSigner(0)
    await (await world.bank.connect(admin).collectFees(world.spec.trader)).wait()
    await catchUp(follower)
    await projectAll(test)
    await expectConservation(world, test.db, [...users, admin as never])
  })

  // ---------------------------------------------------------------------- surprises

  it('given a part that the database does not know, it takes positions and balances from the chain and stops the market', async () => {
    await fund()
    await world.send(await world.part(pair(500)))
    await catchUp(follower)
    await audit()
    expect((await mismatches()).map(({ failure_kind }) => failure_kind)).to.deep.equal([
      'invalid_batch_trade_participant_coverage',
    ])
    expect(await modeOf()).to.equal('cancel_only')
    const matched = await test.db.selectFrom('positions').select(['size', 'matched_size']).execute()
    expect(matched.map(({ size, matched_size }) => size === matched_size)).to.deep.equal([true, true])
  })

  it('given an order smaller than what was sent, it says so and keeps to the chain', async () => {
    await fund()
    await catchUp(follower)
    await trade(pair(500))
    await test.db.updateTable('fills').set({ steps: 400 }).where('side', '=', 'LONG').execute()
    await catchUp(follower)
    await projectAll(test)
    await expectConservation(world, test.db, users)
    await expectPositions(world, test.db, users)
    expect((await mismatches()).map(({ failure_kind }) => failure_kind)).to.deep.equal([
      'missing_expected_position_updates',
    ])
  })

  it('given a position that our rules cannot explain, it asks the contract', async () => {
    await fund()
    await catchUp(follower)
    await trade(pair(500))
    await catchUp(follower)
    await test.db
      .updateTable('positions')
      .set({ folded_margin: -(10n ** 24n) })
      .execute()
    await trade([
      { by: alice, side: 'SHORT', fill: 200, salt: salts++ },
      { by: bob, side: 'LONG', fill: 200, salt: salts++ },
    ])
    await catchUp(follower)
    await projectAll(test)
    await expectConservation(world, test.db, users)
    await expectPositions(world, test.db, users)
    expect((await mismatches()).map(({ failure_kind }) => failure_kind)).to.deep.equal([
      'trade_events_without_position_updates',
    ])
  })

  it('given a settlement of ours that succeeds without a word, it stops the market', async () => {
    await fund()
    await catchUp(follower)
    const part = await world.part(pair(500))
    const admin = await world.provider.getSigner(0)
    const silent = await admin.sendTransaction({ to: alice.address, value: 1n })
    await matchPart(test.db, part, silent.hash)
    await catchUp(follower)
    expect((await mismatches()).map(({ failure_kind }) => failure_kind)).to.deep.equal([
      'no_trade_execution_events',
    ])
    expect(await modeOf()).to.equal('cancel_only')
  })

  // ---------------------------------------------------------------------- forks

  it('given a reorg, it rolls back and follows the new chain to what a fresh database finds', async () => {
    await fund()
    await catchUp(follower)
    const part = await world.part(pair(500))
    const hash = await world.send(part)
    await matchPart(test.db, part, hash)
    await world.deposit(alice, '7')
    await catchUp(follower)
    await projectAll(test)

    // The four blocks of the part and the deposit are gone, and the same heights are empty.
    await world.rpc('anvil_reorg', 4, [])
    await catchUp(follower)
    await audit()
    const fills = await test.db.selectFrom('read.fills').select('status').execute()
    expect(fills.map(({ status }) => status)).to.deep.equal(['RETRYING', 'RETRYING'])
    const orders = await test.db.selectFrom('read.orders').select(['status', 'settling']).execute()
    expect(orders).to.deep.equal(Array(2).fill({ status: 'OPEN', settling: 500 }))

    await world.send(part)
    await catchUp(follower)
    await audit()
    expect(await mismatches()).to.deep.equal([])
    await expectSameAsFresh()
  })

  it('given a chain that was cut short, it waits, and follows once there is more', async () => {
    await fund()
    const early = await world.rpc<string>('evm_snapshot')
    await world.deposit(alice, '7')
    await catchUp(follower)
    await world.rpc('evm_revert', early)
    expect(await follower.pass(), 'a node that is behind').to.equal(false)
    await world.deposit(bob, '1')
    await world.deposit(bob, '2')
    await catchUp(follower)
    await audit()
    await expectSameAsFresh()
  })

  it('given a reorg at the same height, it notices without a new block', async () => {
    await fund()
    await catchUp(follower)
    await world.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    await audit()
    expect(
      await test.db.selectFrom('accounts').select('free').where('free', '=', 0n).execute(),
    ).to.have.length(1)
  })

  it('given an unknown part whose block leaves the chain, nothing of it is left', async () => {
    await fund()
    await world.send(await world.part(pair(500)))
    await catchUp(follower)
    await projectAll(test)
    await world.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    await audit()
    expect(await test.db.selectFrom('read.fills').selectAll().execute()).to.deep.equal([])
    const matched = await test.db.selectFrom('positions').select('matched_size').execute()
    expect(matched).to.deep.equal([{ matched_size: 0 }, { matched_size: 0 }])
  })

  // ---------------------------------------------------------------------- completeness

  it('given a long way to the head, it goes by ranges and finds the same', async () => {
    await fund()
    await world.rpc('anvil_mine', '0x40')
    await world.send(await world.part(pair(500)))
    await world.rpc('anvil_mine', '0x20')
    const live = await world.database()
    open.push(live)
    await catchUp(world.follower(live, chain, { liveDepth: 10_000 }))
    await catchUp(world.follower(test, chain, { range: 30, liveDepth: 3 }))
    expect(await chainState(test.db)).to.deep.equal(await chainState(live.db))
    const stored = await test.db.selectFrom('chain_blocks').select('number').execute()
    expect(stored.length, 'empty blocks are grouped').to.be.lessThan(40)
  })

  it('given two followers at once, every block counts once', async () => {
    await fund()
    await catchUp(follower)
    await trade(pair(500))
    await world.rpc('anvil_mine', '0x5')
    const other = world.follower(test, chain)
    await Promise.allSettled([follower.pass(), other.pass(), follower.pass(), other.pass()])
    await catchUp(follower)
    await audit()
    const settled = await test.db.selectFrom('shard_log').select('row').execute()
    expect(settled.filter(({ row }) => row.kind === 'part_settled')).to.have.length(1)
  })

  it('given the database of another chain, it refuses with both genesis hashes', async () => {
    await catchUp(follower)
    await test.db.updateTable('chain_progress').set({ genesis_hash: '0xother' }).execute()
    const refusal = await world
      .follower(test, chain)
      .pass()
      .catch((error: Error) => error)
    expect(refusal).to.be.instanceOf(OtherChainError)
    expect((refusal as Error).message).to.include('0xother')
  })

  it('given a node that is away, it throws, and goes on where it was once the node is back', async () => {
    await fund()
    await catchUp(follower)
    await world.deposit(alice, '3')
    const away = { ...chain, head: () => Promise.reject(new Error('away')) }
    expect(
      await world
        .follower(test, away)
        .pass()
        .catch((error: Error) => error.message),
    ).to.equal('away')
    await catchUp(follower)
    await audit()
  })

  it('given a node whose logs are of another fork than its blocks, it records nothing', async () => {
    await catchUp(follower)
    await world.deposit(alice, '3')
    const split: Chain = {
      ...chain,
      logsOf: async (hash, addresses) =>
        (await chain.logsOf(hash, addresses)).map((log) => ({ ...log, blockHash: '0xother' })),
    }
    expect(
      await world
        .follower(test, split)
        .pass()
        .catch((error: Error) => error.name),
    ).to.equal('NodeChangedItsMind')
    await catchUp(follower)
    await audit()
  })

  async function expectSameAsFresh(): Promise<void> {
    const fresh = await world.database()
    open.push(fresh)
    await catchUp(world.follower(fresh, chain))
    expect(await chainState(test.db)).to.deep.equal(await chainState(fresh.db))
  }
})
