/** A follower behind an owner of another version: it applies what it can read, and stops with the reason at what it cannot. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { versioned } from '../../../domain/exchange/state-version.ts'
import { createFollower, reasonOf } from '../../../keeper/engine/follower.ts'
import type { Machine } from '../../../keeper/engine/machine.ts'
import { GROUP_VERSION, type Group, type Journal } from '../../../keeper/engine/ports.ts'
import { SILENT } from './support/member-fixture.ts'

const OTHER = 7

/** Its state is the sum of its rows. A negative row is of an unknown format. */
function sumMachine(): Machine<never, number, never> {
  let sum = 0
  const machine = {
    apply(row: number) {
      if (row < 0) throw new Error('a row has at most version 1, received 2')
      sum += row
    },
    digest: () => `${sum}`,
    position: () => 0,
    forget() {},
  }
  return machine as unknown as Machine<never, number, never>
}

/** Digests of the owner's state version are those of its sums. */
function groupsOf(rows: readonly number[], version?: number): Group<number>[] {
  let sum = 0
  const digestOf = () => (version === undefined ? `${sum}` : versioned(`${sum}`, version))
  return rows.map((row, at) => {
    const before = digestOf()
    sum += row
    return { number: at + 1, token: 1, version: GROUP_VERSION, rows: [row], before, digest: digestOf() }
  })
}

function followerOf(groups: readonly Group<number>[]) {
  const read = async (after: number, most: number) => groups.slice(after, after + most)
  const journal = { read, readWritten: read } as unknown as Journal<number>
  return createFollower(sumMachine(), journal, SILENT, { head: 0 })
}

describe('a follower of the journal', () => {
  it('when the owner has another state version, it applies its groups without comparing states', async () => {
    const follower = followerOf(groupsOf([1, 2, 3], OTHER))
    expect(await follower.advance()).to.have.length(3)
    await follower.verifyHead()
    expect(follower.fault).to.equal(null)
  })

  it('when versions alternate, it applies the groups of both', async () => {
    const [own, other] = [groupsOf([1, 2, 3, 4]), groupsOf([1, 2, 3, 4], OTHER)]
    const groups = [own[0], other[1], other[2], own[3]] as Group<number>[]
    const follower = followerOf(groups)
    await follower.advance()
    expect(follower.fault).to.equal(null)
    expect(follower.head).to.equal(4)
  })

  it('when a group of another version does not follow the group before it, it stops', async () => {
    const groups = groupsOf([1, 2, 3], OTHER)
    const follower = followerOf(
      groups.with(2, { ...(groups[2] as Group<number>), before: versioned('9', OTHER) }),
    )
    await follower.advance()
    expect(follower.fault).to.deep.equal({ fault: 'history', number: 2 })
  })

  it('when a group has a row of a later version, it stops and names the row and the remedy', async () => {
    const follower = followerOf(groupsOf([1, -1], OTHER))
    await follower.advance()
    expect(follower.head).to.equal(1)
    expect(follower.fault === null ? '' : reasonOf(follower.fault))
      .to.include('group 2 cannot be applied: a row has at most version 1, received 2')
      .and.to.include('start that version of the engine')
  })
})
