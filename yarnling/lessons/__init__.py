"""Lessons: scenes that run the real cores in virtual time and print their story, and quizzes over their states."""
