import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import {
  type ConnectionSwitches,
  createConnectionSwitches,
} from '../../../api/cancel-switch/connection-switches.ts'
import type { ConnectionSwitch, ConnectionSwitchStore } from '../../../api/cancel-switch/switch-store.ts'
import type { Millis } from '../../../domain/units.ts'

const ALICE = 1
const BOB = 2
const UNKNOWN = -1
const holder = (userId: number) => ({ userId, keyName: 'default' })

/** Counts writes. The next write waits for `afterEach`. */
class RecordedStore implements ConnectionSwitchStore {
  readonly rows = new Map<string, ConnectionSwitch>()
  writes = 0
  afterEach: () => Promise<void> = async () => {}

  arm = (switches: readonly ConnectionSwitch[]): Promise<void> =>
    this.#write(switches, () => {
      if (switches.some(({ user_id }) => user_id === UNKNOWN)) throw new Error('the user does not exist')
      for (const one of switches) this.rows.set(one.connection_id, one)
    })

  renew = this.arm

  disarm = (connections: readonly string[]): Promise<void> =>
    this.#write(connections, () => {
      for (const id of connections) this.rows.delete(id)
    })

  async #write(what: readonly unknown[], change: () => void): Promise<void> {
    if (what.length === 0) return
    this.writes++
    change()
    await this.afterEach()
  }
}

describe('switches of connections', () => {
  const clock = { value: 1_000_000, now: () => clock.value as Millis }
  let store: RecordedStore
  let switches: ConnectionSwitches

  beforeEach(() => {
    store = new RecordedStore()
    switches = createConnectionSwitches(store, clock, { warn() {} })
  })
  afterEach(() => switches.stop())

  const rowOf = (id: string) => store.rows.get(id)

  it('when an account sets the switches of hundreds of connections, the renewal of another waits for two writes', async () => {
    await switches.set('bob', holder(BOB), 5)
    const before = rowOf('bob')?.fire_at as number
    const flood = Array.from({ length: 1_200 }, (_, at) =>
      switches.set(`alice ${at % 300}`, holder(ALICE), 5 + (at % 7)),
    )
    clock.value += 1_300
    store.writes = 0
    const renewedAfter = await new Promise<number>((resolve) => {
      store.afterEach = async () => {
        if ((rowOf('bob')?.fire_at as number) > before) resolve(store.writes)
      }
    })
    store.afterEach = async () => {}
    expect(renewedAfter).to.be.at.most(2)
    expect(await Promise.all(flood)).to.have.length(1_200)
    expect(store.writes).to.be.at.most(5)
    expect(rowOf('alice 299')).to.include({ user_id: ALICE, timeout_seconds: 5 + (1_199 % 7) })
  })

  it('when a connection changes its switch several times at once, each change is answered and the last one counts', async () => {
    const changes = [
      switches.set('a', holder(ALICE), 10),
      switches.set('a', holder(ALICE), 0),
      switches.set('a', holder(ALICE), 20),
    ]
    const now = clock.value
    expect(await Promise.all(changes)).to.deep.equal([now + 10_000, null, now + 20_000])
    expect(rowOf('a')).to.include({ timeout_seconds: 20, fire_at: now + 20_000 })
    expect(
      await Promise.all([switches.set('a', holder(ALICE), 30), switches.set('a', holder(ALICE), 0)]),
    ).to.deep.equal([now + 30_000, null])
    expect([rowOf('a'), switches.isArmed('a')]).to.deep.equal([undefined, false])
  })

  it('when storing a request fails, only its connections get the error', async () => {
    const results = await Promise.allSettled([
      switches.set('a', holder(UNKNOWN), 10),
      switches.set('b', holder(ALICE), 0),
    ])
    expect(results.map(({ status }) => status)).to.deep.equal(['rejected', 'fulfilled'])
    expect(switches.isArmed('a')).to.equal(false)
  })
})
