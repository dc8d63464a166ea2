import test from 'ava';
import { choosePrefixes, splitPaths } from './module-tree.ts';

test('what is given wins over the environment, and that over the folder controllers', (t) => {
  const env = { ENDPOINTS_PREFIX: 'b' };
  t.deepEqual(choosePrefixes('a', env), ['a']);
  t.deepEqual(choosePrefixes(['a', 'c'], env), ['a', 'c']);
  t.deepEqual(choosePrefixes([], env), ['b']);
  t.deepEqual(choosePrefixes(undefined, env), ['b']);
  t.deepEqual(choosePrefixes(undefined, {}), ['controllers']);
  t.deepEqual(choosePrefixes(undefined, { ENDPOINTS_PREFIX: '' }), ['controllers']);
});

test('an empty prefix is none, whoever gives it', (t) => {
  t.deepEqual(choosePrefixes('', { ENDPOINTS_PREFIX: 'b' }), ['b']);
  t.deepEqual(choosePrefixes([''], {}), ['controllers']);
  t.deepEqual(choosePrefixes(['', 'a'], {}), ['a']);
});

test('the environment names several, joined by colons and by numbers in their order', (t) => {
  const env = {
    ENDPOINTS_PREFIX_10: 'e',
    ENDPOINTS_PREFIX_2: 'd',
    ENDPOINTS_PREFIX: 'a:b',
    ENDPOINTS_PREFIX_X: 'no',
    ENDPOINTS_PREFIX_1: 'c',
  };
  t.deepEqual(choosePrefixes(undefined, env), ['a', 'b', 'c', 'd', 'e']);
});

test('on Windows the colon of a drive does not separate', (t) => {
  const text = 'C:\\app\\controllers;D:/more:plain';
  t.deepEqual(splitPaths(text, 'win32'), ['C:\\app\\controllers', 'D:/more', 'plain']);
  t.deepEqual(splitPaths('a:/b', 'linux'), ['a', '/b']);
});
