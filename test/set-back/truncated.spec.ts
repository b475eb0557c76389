import { describeSetBack } from './suite';

describeSetBack('truncated');
