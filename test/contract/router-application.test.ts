import { testBoard } from './router-application.ts';

testBoard({ name: 'alone', inFront: async (url) => url });
