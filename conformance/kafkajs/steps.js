'use strict'
// The line of a step, waiting, and a group's ledger. A line says nothing that differs from run to run; times go to standard error.

const assert = require('assert')

const WAIT = 60000

class Unsupported extends Error {}

function json (v) {
  return JSON.stringify(v, (_, x) => x && typeof x === 'object' && !Array.isArray(x)
    ? Object.fromEntries(Object.entries(x).sort(([a], [b]) => (a < b ? -1 : 1)))
    : x)
}

function line (name, ok, detail, began) {
  process.stdout.write(`{"step":${json(name)},"ok":${json(ok)},"detail":${json(detail)}}\n`)
  process.stderr.write(`${name}: ${Date.now() - began} ms\n`)
}

/** Runs the step; the first wrong thing ends the program. */
async function step (name, body) {
  const began = Date.now()
  try {
    line(name, true, await body(), began)
  } catch (e) {
    if (e instanceof Unsupported) {
      line(name, 'unsupported', e.message, began)
      return
    }
    process.stderr.write(`${e.stack}\n`)
    process.stdout.write(`{"step":${json(name)},"ok":false,"detail":${json(String(e))}}\n`, () => process.exit(1))
    await new Promise(() => {})
  }
}

const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

async function wait (what, fact) {
  const until = Date.now() + WAIT
  while (!await fact()) {
    assert(Date.now() < until, `waited ${WAIT} ms for: ${what}`)
    await pause(5)
  }
}

/** What the members of one group share: who owns what, who read what. */
class Ledger {
  constructor () {
    this.owners = new Map()
    this.reads = new Map()
    this.wrong = null
  }

  assigned (member, partitions) {
    for (const p of partitions) {
      const before = this.owners.get(p)
      if (before && before !== member) this.wrong = `partition ${p} went to ${member.name} while ${before.name} owned it`
      this.owners.set(p, member)
    }
  }

  revoked (member) {
    for (const [p, owner] of this.owners) if (owner === member) this.owners.delete(p)
  }

  read (member, partition, value) {
    if (this.owners.get(partition) !== member) this.wrong = `${member.name} read partition ${partition}, which it does not own`
    this.reads.set(value, (this.reads.get(value) || 0) + 1)
  }

  fine () {
    assert.equal(this.wrong, null)
    return true
  }

  twice () {
    return [...this.reads.values()].filter(n => n > 1).length
  }
}

module.exports = { WAIT, Unsupported, step, pause, wait, Ledger }
