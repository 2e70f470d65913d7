import { globSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { CATALOGUE, type ErrorCode } from '../../../api/error-catalogue.ts'

const STATUSES = [400, 401, 403, 404, 408, 409, 429, 500, 503]

describe('the error catalogue', () => {
  const codes = Object.keys(CATALOGUE) as ErrorCode[]

  it('when a code is looked up, it has one of nine statuses and a message that is a sentence', () => {
    for (const code of codes) {
      const { status, message } = CATALOGUE[code]
      expect(STATUSES).to.include(status)
      expect(message, code).to.match(/^\S.+\.$/)
      expect(code).to.match(/^[A-Z][A-Z0-9_]+$/)
    }
  })

  it('when the status is a client error or a conflict, it is not retryable; when it is 408, 429 or 503, it is', () => {
    for (const code of codes) {
      const { status, retryable } = CATALOGUE[code]
      if ([400, 401, 403, 404, 409].includes(status)) expect(retryable, code).to.equal(false)
      if ([408, 429, 503].includes(status)) expect(retryable, code).to.equal(true)
    }
  })

  it('when a code is in the catalogue, the source uses it and a test covers it', () => {
    const read = (pattern: string): string =>
      globSync(pattern)
        .filter((path) => path !== 'api/error-catalogue.ts' && !path.endsWith('catalogue.test.ts'))
        .map((path) => readFileSync(path, 'utf8'))
        .join('\n')
    const [sources, tests] = [read('{api,domain}/**/*.ts'), read('test/api/**/*.test.ts')]
    for (const code of codes) {
      expect(sources.includes(`'${code}'`), `${code} is raised somewhere`).to.equal(true)
      expect(tests.includes(`'${code}'`), `${code} is tested`).to.equal(true)
    }
  })
})
