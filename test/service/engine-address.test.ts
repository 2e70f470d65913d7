/** The variables that name the engine. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { readEngineAddress } from '../../service/engine-address.ts'
import { ConfigError } from '../../service/environment.ts'

const KEY = 'ab'.repeat(32)

describe('the address of the engine', () => {
  let folder: string
  let file: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'engine-address-'))
    file = join(folder, 'api.key')
    writeFileSync(file, `${KEY}\n`)
  })
  after(() => rmSync(folder, { recursive: true }))

  const messageOf = (env: Record<string, string>): string => {
    try {
      readEngineAddress(env, 'api')
    } catch (error) {
      expect(error).to.be.instanceOf(ConfigError)
      return (error as Error).message
    }
    throw new Error('no error')
  }

  it('when ENGINE_URL is not set, it returns null', () => {
    expect(readEngineAddress({ ENGINE_KEY_FILE: file }, 'api')).to.equal(null)
  })

  it('when members and key are valid, it returns them', () => {
    const url = '/run/clearbatch/engine.sock, engine-b:7400, [::1]:7401'
    expect(readEngineAddress({ ENGINE_URL: url, ENGINE_KEY_FILE: file }, 'api')).to.deep.equal({
      members: ['/run/clearbatch/engine.sock', 'engine-b:7400', '[::1]:7401'],
      key: Buffer.from(KEY, 'hex'),
    })
  })

  it('when a member is malformed, the error names it', () => {
    expect(messageOf({ ENGINE_URL: '/a.sock,engine', ENGINE_KEY_FILE: file })).to.match(
      /^ENGINE_URL contains "engine": expected/,
    )
  })

  it('when the key is missing, unreadable or malformed, the error names the variable and not the key', () => {
    const ENGINE_URL = '/a.sock'
    expect(messageOf({ ENGINE_URL })).to.match(/^ENGINE_KEY_FILE is not set/)
    expect(messageOf({ ENGINE_URL, ENGINE_KEY_FILE: join(folder, 'none') })).to.match(
      /cannot be read: ENOENT/,
    )
    const short = join(folder, 'short.key')
    writeFileSync(short, 'abcd')
    const message = messageOf({ ENGINE_URL, ENGINE_KEY_FILE: short })
    expect(message).to.match(/^ENGINE_KEY_FILE has an invalid key/)
    expect(message).to.not.contain('abcd')
  })
})
