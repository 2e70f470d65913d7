import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, describe, it } from 'mocha'
import { loadIssuerKeys } from '../../stack/issuer/keys.ts'

describe('the keys of the identity provider', () => {
  const dir = mkdtempSync(join(tmpdir(), 'clearbatch-issuer-'))
  const path = join(dir, 'issuer.json')
  after(() => rmSync(dir, { recursive: true, force: true }))

  it('when there are none, they are created, and later starts load the same keys', async () => {
    const keys = await loadIssuerKeys(path)
    expect(await loadIssuerKeys(path)).to.deep.equal(keys)
  })

  it('when the file is damaged, it is refused in one line that names the file and --fresh', async () => {
    await loadIssuerKeys(path)
    const whole = readFileSync(path, 'utf8')
    for (const content of [
      '',
      whole.slice(0, whole.length / 2),
      '{}',
      '[]',
      'null',
      '{"signing":{},"cookies":[]}',
      JSON.stringify({ ...JSON.parse(whole), cookies: [1] }),
    ]) {
      writeFileSync(path, content)
      const refusal = await loadIssuerKeys(path).then(
        () => null,
        ({ message }: Error) => message,
      )
      expect(refusal, content).to.include(path).and.to.include('--fresh').and.not.include('\n')
    }
  })
})
