/** What the statements of relays read does not grow with the number of operations that have ended. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, beforeEach, describe, it } from 'mocha'
import { findRelayOperation, openRelays } from '../../db/relay-operations.ts'
import { listSessionKeys, loadSigningKey } from '../../db/session-keys.ts'
import type { Address } from '../../domain/units.ts'
import { createRelayStore } from '../../keeper/relays/store.ts'
import { addressOf, MarketFixture, type Trader } from '../keeper/support/market-fixture.ts'
import { createExplainedDb, type ExplainedDb } from '../support/explained-db.ts'
import { GROWN_CHAIN, GROWN_RELAYER } from '../support/grown-database.ts'
import { perpetual } from '../support/markets.ts'
import { relaysOfNonce } from '../support/rows/relay-operations.ts'

const OPERATIONS = 20_000
const MOST_PAGES = 100

describe('the access paths of relays', function () {
  this.timeout(60_000)
  let fixture: MarketFixture
  let explained: ExplainedDb
  let alice: Trader
  let owner: Address

  before(async () => {
    fixture = await MarketFixture.open(perpetual)
    alice = await fixture.trader('alice')
    owner = addressOf(alice.wallet)
    const operation = `
      insert into relay_operations (operation_id, user_id, kind, session_key, owner, target, gas, nonce, deadline, data, signature, status,
          relayer, relayer_nonce, tx_hash, created_at, updated_at)
        select 'id' || n, ${alice.account}, 'register_session_key', 'key' || n, '${owner}', '0x', 1, n, n, '0x', repeat('5a', 200),`
    await sql
      .raw(`
      ${operation} 'CONFIRMED', '${GROWN_RELAYER}', n, 'tx' || n, n, n from generate_series(0, ${OPERATIONS - 1}) n;
      ${operation} 'QUEUED', null, null, null, n, n from generate_series(${OPERATIONS}, ${OPERATIONS}) n;
      ${operation} 'RELAYING', '${GROWN_RELAYER}', n, 'tx' || n, n, n from generate_series(${OPERATIONS + 1}, ${OPERATIONS + 1}) n;
      insert into session_keys (owner, key, permissions, registered_at, expires_at, block)
        select '${owner}', 'key' || n, 3, n, n, n from generate_series(0, 200) n;
      insert into forwarder_nonces (signer, next_nonce, block) select 'signer' || n, n, n from generate_series(1, ${OPERATIONS}) n;
      insert into forwarder_nonces (signer, next_nonce, block) values ('${owner}', ${OPERATIONS}, 1);
      insert into relayers (address, chain_id, lane, next_nonce) values ('${GROWN_RELAYER}', ${GROWN_CHAIN}, 'relay', ${OPERATIONS});
      insert into relayer_transactions (tx_hash, relayer, chain_id, nonce, purpose, raw, status, signed_at)
        select 'tx' || n, '${GROWN_RELAYER}', ${GROWN_CHAIN}, n, 'relay', repeat('5a', 256), 'MINED', n
        from generate_series(0, ${OPERATIONS + 1}) n;
      insert into chain_blocks (number, hash, parent_hash, timestamp)
        select n, 'hash' || n, 'hash', n from generate_series(1, ${OPERATIONS}) n;
      insert into chain_progress (chain_id, genesis_hash, next_block, head, completed_at)
        values (${GROWN_CHAIN}, '0x00', ${OPERATIONS + 1}, ${OPERATIONS}, 0);
    `)
      .execute(fixture.db)
    for (const table of [
      'relay_operations',
      'forwarder_nonces',
      'relayer_transactions',
      'chain_blocks',
      'session_keys',
    ])
      await sql.raw(`vacuum analyze ${table}`).execute(fixture.db)
    explained = createExplainedDb(fixture.url)
  })
  after(async () => {
    await explained.db.destroy()
    await fixture.close()
  })
  beforeEach(() => void explained.drain())

  function expectFewPages(): void {
    const statements = explained.drain()
    expect(statements).not.to.deep.equal([])
    expect(statements.filter(({ pages }) => pages > MOST_PAGES)).to.deep.equal([])
  }

  it('when the keeper looks for what to send and what to end, it reads the open operations only', async () => {
    const store = createRelayStore({ db: explained.db, engine: fixture.engine })
    const lane = { name: 'relay', relayer: GROWN_RELAYER as Address, chainId: GROWN_CHAIN }
    expect((await store.ready(20)).map(({ nonce }) => nonce)).to.deep.equal([OPERATIONS])
    expect(await store.unexecuted(lane, 20)).to.deep.equal([])
    expect(await store.expired(1, 20)).to.deep.equal([])
    expectFewPages()
  })

  it('when operations of an owner with many are looked up, each is found by an index', async () => {
    const { db } = explained
    expect((await findRelayOperation(db, 'id7'))?.nonce).to.equal(7)
    expect((await openRelays(db, owner)).map(({ nonce }) => nonce)).to.deep.equal([
      OPERATIONS,
      OPERATIONS + 1,
    ])
    expect(await db.transaction().execute((tx) => relaysOfNonce(tx, owner, 9))).to.have.length(1)
    expectFewPages()
  })

  it('when the signer of an order is looked up, its revocation is found by an index', async () => {
    const { db } = explained
    expect(await loadSigningKey(db, { owner, key: 'key5' })).to.include({ key: 'key5', is_revoking: false })
    expect(await listSessionKeys(db, owner, { status: null, now: 0, after: null, limit: 10 })).to.have.length(
      10,
    )
    expectFewPages()
  })
})
