/** All errors of a process's configuration at once. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { readConfig as readApi } from '../../api/config.ts'
import { readConfig as readBackstop } from '../../backstop/config.ts'
import { readConfig as readIndexer } from '../../indexer/config.ts'
import { readConfig as readKeeper } from '../../keeper/config.ts'
import { readConfig as readEngine } from '../../keeper/engine/config.ts'
import { ConfigError, readWhole, rejectVariable } from '../../service/config-error.ts'
import type { Env } from '../../service/environment.ts'

const linesOf = (read: () => unknown): string[] => {
  try {
    readWhole(read)
  } catch (error) {
    expect(error).to.be.instanceOf(ConfigError)
    return (error as Error).message.split('\n')
  }
  return []
}

const WRONG: Env = {
  DATABASE_URL: 'mysql://user:secret@host/db',
  ENGINE_URL: 'nowhere',
  ENGINE_LISTEN: 'nowhere',
  ENGINE_KEYS_FILE: '/nowhere/keys.json',
  INTERNAL_PORT: '70000',
  LOG_LEVEL: 'loud',
  CHAIN_ID: 'main',
  TLS_CERT_FILE: '/nowhere/cert.pem',
}

describe('the configuration of a process', () => {
  for (const [name, read, variables] of [
    [
      'engine',
      readEngine,
      ['DATABASE_URL', 'ENGINE_LISTEN', 'ENGINE_KEYS_FILE', 'CHAIN_ID', 'ADDRESS_MARGIN_BANK'],
    ],
    ['indexer', readIndexer, ['DATABASE_URL', 'ENGINE_URL', 'ENGINE_KEYS_FILE', 'CHAIN_ID', 'RPC_URL']],
    ['keeper', readKeeper, ['DATABASE_URL', 'ENGINE_URL', 'ENGINE_KEYS_FILE', 'CHAIN_ID', 'RELAYER_KEYS']],
    ['api', readApi, ['DATABASE_URL', 'ENGINE_URL', 'ENGINE_KEYS_FILE', 'CHAIN_ID', 'ADDRESS_FORWARDER']],
    ['backstop', readBackstop, ['BASE_URL']],
  ] as const) {
    it(`when many variables of the ${name} are wrong, one start names each of them once, with no secret`, () => {
      const lines = linesOf(() => (read as (env: Env) => unknown)(WRONG))
      const named = lines.map((line) => line.split(' ', 1)[0])
      expect(named).to.include.members([...variables, 'INTERNAL_PORT', 'LOG_LEVEL', 'TLS_KEY_FILE'])
      expect(new Set(named).size, lines.join('\n')).to.equal(named.length)
      for (const line of lines) expect(line).to.match(/expected|cannot start without it/)
      expect(lines.join()).not.to.include('secret')
    })
  }

  it('when one error has several lines of a variable, all of them stay, and a later error of the variable is dropped', () => {
    const read = () => {
      throw new ConfigError('KEYS has no a\nKEYS has no b\nOTHER is 1')
    }
    expect(linesOf(read)).to.deep.equal(['KEYS has no a', 'KEYS has no b', 'OTHER is 1'])
  })

  it('when an error is none of the configuration, it is thrown as it is, and later reads throw at once', () => {
    const broken = new TypeError('a defect')
    expect(() =>
      readWhole(() => {
        throw broken
      }),
    ).to.throw(broken)
    expect(() => rejectVariable('A', 'is 1')).to.throw('A is 1')
  })
})
