package a

func h() { panic("test") }
